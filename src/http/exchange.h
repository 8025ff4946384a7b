// What a request under way consists of on the server's side: its state, and the queue that carries the calls of HttpExchange from any thread to
// the server's, in order. Handle, queue and connection share the state, so none of them minds which of the others ends first.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "http/http_message.h"
#include "http/http_server.h"

namespace espalier {

// Takes the calls of one exchange, on the server's thread. `flush` follows once all calls that had arrived are taken.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void respond(HttpResponse response) = 0;
  virtual void begin_stream(HttpResponse head, StreamFiller filler) = 0;
  virtual void write(std::string bytes) = 0;
  virtual void finish() = 0;
  virtual void abandon() = 0;  // nobody will answer any more
  virtual void flush() = 0;
  virtual void cut() = 0;      // a fault of ours: the connection ends
};

struct ExchangeState {
  HttpRequest request;
  std::atomic<bool> gone{false};

  // The server's thread alone.
  AnswerSink* sink = nullptr;  // null once the answer is out or the client has gone
  std::vector<std::function<void()>> on_gone = {};
};

namespace exchange_call {
struct Respond { HttpResponse response; };
struct BeginStream { HttpResponse head; StreamFiller filler; };
struct Write { std::string bytes; };
struct Finish {};
struct Abandon {};
struct OnGone { std::function<void()> callback; };
struct Post { std::function<void()> task; };
}  // namespace exchange_call

struct ExchangeCall {
  std::shared_ptr<ExchangeState> exchange;
  std::variant<exchange_call::Respond, exchange_call::BeginStream, exchange_call::Write, exchange_call::Finish, exchange_call::Abandon,
               exchange_call::OnGone, exchange_call::Post>
      what;
};

class ExchangeQueue : public std::enable_shared_from_this<ExchangeQueue> {
 public:
  using Task = std::function<void()>;
  // `post`, called from any thread, has a task run on the server's thread later. What it holds must not hold the queue.
  explicit ExchangeQueue(std::function<void(Task)> post) : post_(std::move(post)) {}

  void push(ExchangeCall call);  // any thread; dropped once closed
  void run();                    // the server's thread: what has been pushed until now
  void close();                  // what is queued is dropped

 private:
  std::function<void(Task)> post_;
  std::mutex mutex_;
  std::vector<ExchangeCall> calls_;
  bool run_is_due_ = false;
  bool closed_ = false;
};

// The caller's end of an exchange.
std::shared_ptr<HttpExchange> make_exchange(std::shared_ptr<ExchangeState> state, std::shared_ptr<ExchangeQueue> queue);

// Runs what a caller gave; an exception that escapes is logged and goes no further. False if there was one.
bool run_guarded(const char* what, const std::function<void()>& function);

}  // namespace espalier
