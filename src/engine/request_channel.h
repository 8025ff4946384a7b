// The shared end of a request: events on their way from the engine thread to the consumer, and the consumer's wish to stop.
// Every member may be called from both threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "engine/request.h"

namespace espalier {

class RequestChannel {
 public:
  // Engine side.
  void push(TokenEvent event);
  void close(Status status, RequestStats stats);
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // Consumer side. Without a timeout: waits for ever.
  std::optional<TokenEvent> pop(std::optional<std::chrono::milliseconds> timeout, bool& timed_out);
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }  // the engine looks before every step
  Status status() const;
  RequestStats stats() const;

 private:
  std::atomic<bool> cancelled_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TokenEvent> events_;
  bool closed_ = false;
  Status status_ = Ok{};
  RequestStats stats_;
};

}  // namespace espalier
