#include "server/delivery.h"

#include <algorithm>
#include <utility>

namespace espalier {

Delivery::Delivery(std::shared_ptr<HttpExchange> exchange, std::vector<TokenStream> streams, std::unique_ptr<Reply> reply, DeliveryOptions options,
                   RequestRecord record, std::function<void(const RequestRecord&)> on_over)
    : exchange_(std::move(exchange)),
      streams_(std::move(streams)),
      over_(streams_.size(), false),
      reply_(std::move(reply)),
      options_(std::move(options)),
      record_(std::move(record)),
      on_over_(std::move(on_over)) {
  record_.generated = true;
  record_.stream = options_.form.stream;
}

void Delivery::begin() {
  if (options_.form.stream) {
    HttpResponse head{.content_type = "text/event-stream", .headers = options_.headers};
    head.headers.push_back({"Cache-Control", "no-cache"});
    head.headers.push_back({"X-Accel-Buffering", "no"});  // nginx passes events on as they come
    exchange_->begin_stream(std::move(head), options_.filler);
  }
  const std::weak_ptr<Delivery> weak = weak_from_this();
  exchange_->on_gone([weak] {
    if (const auto self = weak.lock()) self->cancel();
  });
  for (TokenStream& stream : streams_) {
    stream.on_change([weak] {
      const auto self = weak.lock();
      if (self == nullptr || self->nudged_.exchange(true)) return;
      self->exchange_->post([weak] {
        if (const auto again = weak.lock()) again->drain();
      });
    });
  }
}

void Delivery::cancel() {
  record_.client_gone = true;
  for (TokenStream& stream : streams_) stream.cancel();
}

void Delivery::drain() {
  if (finished_) return;
  nudged_.store(false);  // before reading: what arrives from here on nudges again
  std::string bytes;
  for (size_t i = 0; i < streams_.size(); ++i) {
    while (!over_[i]) {
      bool over = false;
      const std::optional<TokenEvent> event = streams_[i].poll(over);
      over_[i] = over;
      if (!event.has_value()) break;
      if (!record_.first_token_ms.has_value() && event->token >= 0) record_.first_token_ms = ms_since(options_.received);
      if (options_.keep_text) record_.text += event->text;
      bytes += reply_->on_event(i, *event);
    }
  }
  if (std::all_of(over_.begin(), over_.end(), [](bool over) { return over; })) {
    if (!bytes.empty()) exchange_->write(std::move(bytes));
    finish();
    return;
  }
  if (!bytes.empty()) exchange_->write(std::move(bytes));
  if (reply_->satisfied()) {
    for (TokenStream& stream : streams_) stream.cancel();
  }
}

void Delivery::finish() {
  finished_ = true;
  record_.stats = total_stats();
  record_.status = 200;
  const Status ended = status();
  if (!ended.ok() && !record_.client_gone) {
    const ApiError error = error_of_engine(ended.error(), options_.context_length);
    record_.error = error.message;
    record_.status = error.status;
    if (options_.form.stream) {
      exchange_->write(sse_error(error));
      exchange_->finish();
    } else {
      HttpResponse response = to_response(error);
      response.headers.insert(response.headers.end(), options_.headers.begin(), options_.headers.end());
      exchange_->respond(std::move(response));
    }
  } else if (options_.form.stream) {
    exchange_->write(reply_->finish(record_.stats));
    exchange_->finish();
  } else {
    exchange_->respond({.headers = options_.headers, .body = reply_->finish(record_.stats)});
  }
  record_.finish_reason = record_.client_gone ? std::string(finish_reason_name(FinishReason::kCancelled)) : reply_->finish_reason();
  record_.empty_reply = ended.ok() && !record_.client_gone && reply_->empty();
  record_.stray_call = reply_->has_stray_call();
  record_.tool_calls = reply_->num_tool_calls();
  record_.total_ms = ms_since(options_.received);
  on_over_(record_);
}

Status Delivery::status() const {
  if (reply_->satisfied()) return Ok{};  // whatever was cancelled then was cancelled by us
  for (const TokenStream& stream : streams_) ESPALIER_TRY(stream.status());
  return Ok{};
}

RequestStats Delivery::total_stats() const {
  RequestStats total = streams_.front().stats();
  for (size_t i = 1; i < streams_.size(); ++i) {
    const RequestStats stats = streams_[i].stats();
    total.prompt_tokens += stats.prompt_tokens;
    total.hot_tokens += stats.hot_tokens;
    total.adopted_tokens += stats.adopted_tokens;
    total.output_tokens += stats.output_tokens;
    total.preemptions += stats.preemptions;
    total.queue_ms = std::max(total.queue_ms, stats.queue_ms);
    total.first_token_ms = std::min(total.first_token_ms, stats.first_token_ms);
    total.total_ms = std::max(total.total_ms, stats.total_ms);
    if (total.cold_reason.empty()) total.cold_reason = stats.cold_reason;
  }
  return total;
}

}  // namespace espalier
