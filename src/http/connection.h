// One connection of the server, without its socket: reads requests in order, has each answered before the next is looked at, keeps reading
// meanwhile so that a client that goes is noticed, and keeps the deadlines. Everything here happens on the server's thread. The socket is a
// Transport, so the same code runs over TCP, TLS and the fuzzer's bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "http/exchange.h"
#include "http/http_server.h"
#include "http/input_buffer.h"
#include "http/request_reader.h"
#include "http/response_framing.h"

namespace espalier {

using HttpTime = std::chrono::steady_clock::time_point;
HttpTime from_now(std::chrono::milliseconds time);  // milliseconds::max() is as good as never

// Moves bytes for a Connection and calls it back, never from within a call. At most one read and one write are under way.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void start_read(std::span<char> into) = 0;        // then on_read or on_read_end
  virtual void start_write(std::string_view bytes) = 0;     // then on_written or on_write_failed
  virtual void wake_at(HttpTime time) = 0;                  // then on_wake; replaces an earlier wake_at
  virtual void shut_down_sending() = 0;                     // the client is told that nothing more will come
  virtual void close() = 0;                                 // nothing is called back any more
};

// What all connections of a server share.
struct ConnectionContext {
  HttpLimits limits;
  HttpCallbacks callbacks;
  std::shared_ptr<ExchangeQueue> queue;
  bool stopping = false;  // no further request is begun
  std::atomic<int64_t> requests{0};
  std::atomic<int64_t> refused{0};
};

class Connection final : public AnswerSink {
 public:
  Connection(Transport& transport, ConnectionContext& context, std::string peer);
  ~Connection() override = default;

  void start();  // the transport can read and write from now on

  // From the transport.
  void on_read(size_t num_bytes);
  void on_read_end();  // the client sends nothing more, or the connection broke
  void on_written(size_t num_bytes);
  void on_write_failed();
  void on_wake();

  bool idle() const { return phase_ == Phase::kIdle; }
  HttpTime idle_since() const { return idle_since_; }
  bool busy() const;       // a request is being read or answered: closing would be noticed
  void close_if_idle();    // a request of which only a part of the head has come has not begun either

  // AnswerSink.
  void respond(HttpResponse response) override;
  void begin_stream(HttpResponse head, StreamFiller filler) override;
  void write(std::string bytes) override;
  void finish() override;
  void abandon() override;
  void flush() override;
  void cut() override;  // also from the server

 private:
  enum class Phase {
    kIdle,       // between requests
    kHead,       // some bytes of a request have come
    kBody,       // the gate has let it pass
    kAnswering,  // an exchange is under way
    kRefusing,   // an answer that ends the connection is being sent; what the client sends is thrown away
    kLingering,  // sent: the client closes first, so that it reads the answer rather than a reset
    kClosed,
  };
  enum class Answer { kNone, kStream, kWhole };  // as far as the caller has given it

  void read_on();
  void take_requests();
  void take_head();
  void hand_over();
  void refuse(const HttpResponse& response);
  void fail(int status, std::string_view message);
  HttpResponse error_page(int status, std::string_view message) const;

  void whole_answer(const HttpResponse& response, ConnectionOption option);
  ConnectionOption connection_option() const;
  bool is_call_in_order(const char* call, Answer expected) const;
  void append_to_stream(std::string_view bytes);
  void wait_to_fill();
  void answer_sent();
  void linger();
  void close();
  size_t unsent() const { return queued_.size() + sending_.size() - sent_; }

  void set_deadline(HttpTime deadline);
  void schedule();

  Transport& transport_;
  ConnectionContext& context_;
  Phase phase_ = Phase::kIdle;

  // Reading.
  InputBuffer input_;
  RequestReader reader_;
  bool reading_ = false;
  bool read_ended_ = false;
  size_t linger_bytes_ = 0;
  HttpTime idle_since_ = std::chrono::steady_clock::now();

  // The request that is being answered.
  std::shared_ptr<ExchangeState> exchange_;
  Answer answer_ = Answer::kNone;
  bool is_head_request_ = false;
  bool client_keeps_alive_ = false;
  bool client_understands_chunks_ = false;
  bool continue_sent_ = false;
  bool close_after_ = false;
  BodyFraming framing_ = BodyFraming::kLength;
  StreamFiller filler_;

  // Writing: one string is under way, the next one collects.
  std::string queued_;
  std::string sending_;
  size_t sent_ = 0;
  bool writing_ = false;

  // Deadlines; HttpTime::max() where there is none.
  HttpTime deadline_ = HttpTime::max();  // of the phase
  HttpTime linger_end_ = HttpTime::max();
  HttpTime send_deadline_ = HttpTime::max();
  HttpTime filler_deadline_ = HttpTime::max();
  HttpTime wake_ = HttpTime::max();  // asked of the transport
};

}  // namespace espalier
