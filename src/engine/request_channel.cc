#include "engine/request_channel.h"

namespace espalier {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kCancelled: return "cancelled";
  }
  return "unknown";
}

void RequestChannel::push(TokenEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  changed_.notify_one();
}

void RequestChannel::close(Status status, RequestStats stats) {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  status_ = std::move(status);
  stats_ = std::move(stats);
  changed_.notify_all();
}

std::optional<TokenEvent> RequestChannel::pop(std::optional<std::chrono::milliseconds> timeout, bool& timed_out) {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return !events_.empty() || closed_; };
  timed_out = false;
  if (!timeout.has_value()) {
    changed_.wait(lock, ready);
  } else if (!changed_.wait_for(lock, *timeout, ready)) {
    timed_out = true;
    return std::nullopt;
  }
  if (events_.empty()) return std::nullopt;
  TokenEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

Status RequestChannel::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

RequestStats RequestChannel::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

TokenStream::TokenStream(std::shared_ptr<RequestChannel> channel) : channel_(std::move(channel)) {}
TokenStream::TokenStream(TokenStream&&) noexcept = default;
TokenStream& TokenStream::operator=(TokenStream&& other) noexcept {
  if (channel_ != nullptr && channel_ != other.channel_) channel_->cancel();
  channel_ = std::move(other.channel_);
  return *this;
}
TokenStream::~TokenStream() {
  if (channel_ != nullptr) channel_->cancel();
}

std::optional<TokenEvent> TokenStream::next() {
  bool timed_out = false;
  return channel_->pop(std::nullopt, timed_out);
}
std::optional<TokenEvent> TokenStream::next_for(std::chrono::milliseconds timeout, bool& timed_out) { return channel_->pop(timeout, timed_out); }
void TokenStream::cancel() { channel_->cancel(); }
Status TokenStream::status() const { return channel_->status(); }
RequestStats TokenStream::stats() const { return channel_->stats(); }

}  // namespace espalier
