// The shared end of a request: events on their way from the engine thread to the consumer, and the consumer's wish to stop.
// Every member may be called from both threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "engine/request.h"

namespace espalier {

class RequestChannel {
 public:
  // Engine side.
  void push(TokenEvent event);
  void close(Status status, RequestStats stats);  // the first one counts
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // Consumer side. Without a timeout: waits for ever.
  std::optional<TokenEvent> pop(std::optional<std::chrono::milliseconds> timeout, bool& timed_out);
  std::optional<TokenEvent> poll(bool& over);
  void on_change(std::function<void()> callback);
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }  // the engine looks before every step
  Status status() const;
  RequestStats stats() const;

 private:
  void tell();
  std::optional<TokenEvent> take();  // with the lock held

  std::atomic<bool> cancelled_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TokenEvent> events_;
  bool closed_ = false;
  Status status_ = Ok{};
  RequestStats stats_;
  std::shared_ptr<const std::function<void()>> on_change_;  // called and destroyed without the lock: its captures may own this channel's stream
  bool told_ = false;                                       // since the last read
};

}  // namespace espalier
