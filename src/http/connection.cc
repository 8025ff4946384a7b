#include "http/connection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kReadBytes = size_t{16} << 10;
constexpr size_t kMaxHeldBytes = size_t{256} << 10;  // of later requests, while one is answered
constexpr size_t kMaxKeptCapacity = size_t{1} << 20;
// What a client whose connection ends may still take to read its last answer: time without sending, time, and bytes that are thrown away.
constexpr milliseconds kLingerSilence{1'000};
constexpr milliseconds kLingerTime{5'000};
constexpr size_t kLingerBytes = size_t{64} << 20;

}  // namespace

HttpTime from_now(milliseconds time) { return steady_clock::now() + std::min<milliseconds>(time, std::chrono::hours(24 * 365)); }

Connection::Connection(Transport& transport, ConnectionContext& context, std::string peer)
    : transport_(transport), context_(context), reader_(context.limits.max_header_bytes, context.limits.max_body_bytes, std::move(peer)) {}

void Connection::start() {
  idle_since_ = steady_clock::now();
  set_deadline(from_now(context_.limits.idle_timeout));
  read_on();
}

bool Connection::busy() const { return phase_ == Phase::kBody || phase_ == Phase::kAnswering || phase_ == Phase::kRefusing; }

void Connection::close_if_idle() {
  if (phase_ == Phase::kIdle || phase_ == Phase::kHead) close();
}

void Connection::cut() { close(); }

// Reading.

void Connection::read_on() {
  if (reading_ || read_ended_ || phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kAnswering && input_.view().size() >= kMaxHeldBytes) return;
  reading_ = true;
  transport_.start_read(input_.space(kReadBytes));
}

void Connection::on_read(size_t num_bytes) {
  reading_ = false;
  input_.commit(num_bytes);
  if (phase_ == Phase::kRefusing) input_.clear();
  if (phase_ == Phase::kLingering) {
    input_.clear();
    linger_bytes_ += num_bytes;
    if (linger_bytes_ > kLingerBytes) return close();
    set_deadline(std::min(from_now(kLingerSilence), linger_end_));
  }
  take_requests();
  read_on();
}

void Connection::on_read_end() {
  reading_ = false;
  read_ended_ = true;
  // A client that was refused may well have stopped sending, and waits for the reason.
  if (phase_ != Phase::kRefusing) close();
}

void Connection::take_requests() {
  while (phase_ == Phase::kIdle || phase_ == Phase::kHead || phase_ == Phase::kBody) {
    std::string_view bytes = input_.view();
    const RequestReader::Step step = reader_.read(bytes);
    input_.consume(input_.view().size() - bytes.size());
    switch (step) {
      case RequestReader::Step::kHead: take_head(); break;
      case RequestReader::Step::kRequest: hand_over(); break;
      case RequestReader::Step::kFault: fail(reader_.fault().status, reader_.fault().message); break;
      case RequestReader::Step::kMore:
        if (phase_ == Phase::kIdle && (reader_.started() || !bytes.empty())) {
          phase_ = Phase::kHead;
          set_deadline(from_now(context_.limits.header_timeout));
        }
        if (phase_ == Phase::kBody && bytes.empty() && reader_.wants_continue() && !std::exchange(continue_sent_, true)) {
          queued_ += "HTTP/1.1 100 Continue\r\n\r\n";
          flush();
        }
        return;
    }
  }
}

void Connection::take_head() {
  phase_ = Phase::kBody;
  set_deadline(from_now(context_.limits.body_timeout));
  is_head_request_ = reader_.head().method == "HEAD";
  client_keeps_alive_ = reader_.keep_alive();
  client_understands_chunks_ = reader_.understands_chunks();
  continue_sent_ = false;
  if (!context_.callbacks.gate) return;
  std::optional<HttpResponse> refusal;
  if (!run_guarded("the gate", [&] { refusal = context_.callbacks.gate(reader_.head()); })) return fail(500, "internal error");
  if (refusal) refuse(*refusal);
}

void Connection::hand_over() {
  phase_ = Phase::kAnswering;
  set_deadline(HttpTime::max());
  exchange_ = std::make_shared<ExchangeState>();
  exchange_->request = reader_.take();
  exchange_->sink = this;
  ++context_.requests;
  const std::shared_ptr<ExchangeState> state = exchange_;
  std::shared_ptr<HttpExchange> exchange = make_exchange(state, context_.queue);
  // Behind what the handler may have answered before it threw.
  if (!run_guarded("the handler", [&] { context_.callbacks.handler(std::move(exchange)); })) context_.queue->push({state, exchange_call::Abandon{}});
}

void Connection::fail(int status, std::string_view message) { refuse(error_page(status, message)); }

void Connection::refuse(const HttpResponse& response) {
  ++context_.refused;
  phase_ = Phase::kRefusing;
  set_deadline(HttpTime::max());
  whole_answer(response, ConnectionOption::kClose);
  flush();
}

HttpResponse Connection::error_page(int status, std::string_view message) const {
  HttpResponse page{.status = status, .content_type = "text/plain", .body = std::string(message) + "\n"};
  if (context_.callbacks.error_page) run_guarded("the error page", [&] { page = context_.callbacks.error_page(status, message); });
  return page;
}

// Answering.

void Connection::whole_answer(const HttpResponse& response, ConnectionOption option) {
  const BodyFraming framing = has_body(response.status) ? BodyFraming::kLength : BodyFraming::kNone;
  append_head(queued_, response, framing, option);
  if (framing == BodyFraming::kLength && !is_head_request_) queued_ += response.body;
  close_after_ = option == ConnectionOption::kClose;
  answer_ = Answer::kWhole;
}

ConnectionOption Connection::connection_option() const {
  if (!client_keeps_alive_ || context_.stopping) return ConnectionOption::kClose;
  return client_understands_chunks_ ? ConnectionOption::kNone : ConnectionOption::kKeepAlive;
}

bool Connection::is_call_in_order(const char* call, Answer expected) const {
  if (answer_ != expected) log_error("http: {} ignored: {}", call, answer_ == Answer::kNone ? "no stream was begun" : "the request has an answer");
  return answer_ == expected;
}

void Connection::respond(HttpResponse response) {
  if (!is_call_in_order("respond", Answer::kNone)) return;
  whole_answer(response, connection_option());
}

void Connection::begin_stream(HttpResponse head, StreamFiller filler) {
  if (!is_call_in_order("begin_stream", Answer::kNone)) return;
  framing_ = !has_body(head.status) ? BodyFraming::kNone : client_understands_chunks_ ? BodyFraming::kChunked : BodyFraming::kUntilClose;
  const ConnectionOption option = framing_ == BodyFraming::kUntilClose ? ConnectionOption::kClose : connection_option();
  append_head(queued_, head, framing_, option);
  close_after_ = option == ConnectionOption::kClose;
  answer_ = Answer::kStream;
  filler_ = std::move(filler);
  wait_to_fill();
  append_to_stream(head.body);
}

void Connection::write(std::string bytes) {
  if (!is_call_in_order("write", Answer::kStream)) return;
  if (unsent() > context_.limits.max_unsent_bytes) {
    log_info("http: a client left {} bytes of its answer unread: dropped", unsent());
    return close();
  }
  append_to_stream(bytes);
}

void Connection::append_to_stream(std::string_view bytes) {
  if (bytes.empty() || is_head_request_ || framing_ == BodyFraming::kNone) return;
  if (framing_ == BodyFraming::kChunked) {
    append_chunk(queued_, bytes);
  } else {
    queued_ += bytes;
  }
  wait_to_fill();
}

void Connection::wait_to_fill() {
  if (filler_.bytes.empty()) return;
  filler_deadline_ = from_now(std::max(filler_.after, milliseconds(1)));
  schedule();
}

void Connection::finish() {
  if (!is_call_in_order("finish", Answer::kStream)) return;
  if (framing_ == BodyFraming::kChunked && !is_head_request_) append_last_chunk(queued_);
  answer_ = Answer::kWhole;
}

void Connection::abandon() {
  if (answer_ == Answer::kWhole) return;
  log_error("http: {} {} was left without {}", exchange_->request.method, exchange_->request.path,
            answer_ == Answer::kNone ? "an answer" : "the end of its stream");
  if (answer_ == Answer::kStream) {
    // The end of the connection without a last chunk tells the client that its stream was cut.
    answer_ = Answer::kWhole;
    close_after_ = true;
    return;
  }
  ++context_.refused;
  whole_answer(error_page(500, "internal error"), connection_option());
}

void Connection::flush() {
  if (phase_ == Phase::kClosed || writing_) return;
  if (queued_.empty()) {
    if (answer_ == Answer::kWhole) answer_sent();
    return;
  }
  sending_.swap(queued_);
  sent_ = 0;
  writing_ = true;
  send_deadline_ = from_now(context_.limits.send_timeout);
  schedule();
  transport_.start_write(sending_);
}

void Connection::on_written(size_t num_bytes) {
  sent_ += num_bytes;
  if (sent_ < sending_.size()) {
    send_deadline_ = from_now(context_.limits.send_timeout);
    transport_.start_write(std::string_view(sending_).substr(sent_));
    return;
  }
  writing_ = false;
  send_deadline_ = HttpTime::max();
  sent_ = 0;
  if (sending_.capacity() > kMaxKeptCapacity) sending_ = {};
  sending_.clear();
  flush();
}

void Connection::on_write_failed() { close(); }

void Connection::answer_sent() {
  answer_ = Answer::kNone;
  filler_ = {};
  filler_deadline_ = HttpTime::max();
  is_head_request_ = false;
  if (exchange_) {
    exchange_->sink = nullptr;
    exchange_->on_gone.clear();
    exchange_.reset();
  }
  if (close_after_ || context_.stopping) return linger();
  phase_ = Phase::kIdle;
  idle_since_ = steady_clock::now();
  set_deadline(from_now(context_.limits.idle_timeout));
  take_requests();
  read_on();
}

// The end.

void Connection::linger() {
  if (read_ended_) return close();
  phase_ = Phase::kLingering;
  linger_end_ = from_now(kLingerTime);
  set_deadline(from_now(kLingerSilence));
  transport_.shut_down_sending();
  read_on();
}

void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  transport_.close();
  if (!exchange_) return;
  const std::shared_ptr<ExchangeState> exchange = std::move(exchange_);
  exchange->sink = nullptr;
  exchange->gone = true;
  const std::vector<std::function<void()>> callbacks = std::move(exchange->on_gone);
  for (const std::function<void()>& callback : callbacks) run_guarded("an on_gone callback", callback);
}

// Deadlines.

void Connection::set_deadline(HttpTime deadline) {
  deadline_ = deadline;
  schedule();
}

// The transport is asked again only for an earlier time: waking early costs less than moving a timer with each request and each write.
void Connection::schedule() {
  const HttpTime earliest = std::min({deadline_, send_deadline_, filler_deadline_});
  if (earliest >= wake_) return;
  wake_ = earliest;
  transport_.wake_at(earliest);
}

void Connection::on_wake() {
  wake_ = HttpTime::max();
  const HttpTime now = steady_clock::now();
  if (send_deadline_ <= now) {
    log_info("http: a client read nothing of its answer for {} ms: dropped", context_.limits.send_timeout.count());
    return close();
  }
  if (deadline_ <= now) {
    deadline_ = HttpTime::max();
    if (phase_ == Phase::kIdle || phase_ == Phase::kLingering) return close();
    if (phase_ == Phase::kHead) fail(408, "the headers of the request did not come in time");
    if (phase_ == Phase::kBody) fail(408, "the body of the request did not come in time");
  }
  if (filler_deadline_ <= now) {
    filler_deadline_ = HttpTime::max();
    if (answer_ == Answer::kStream) {
      if (unsent() == 0) append_to_stream(filler_.bytes);
      wait_to_fill();
      flush();
    }
  }
  schedule();
}

}  // namespace espalier
