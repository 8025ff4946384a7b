#include "engine/request_channel.h"

#include <utility>

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
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_one();
  }
  tell();
}

void RequestChannel::close(Status status, RequestStats stats) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    status_ = std::move(status);
    stats_ = std::move(stats);
    changed_.notify_all();
  }
  tell();
}

void RequestChannel::on_change(std::function<void()> callback) {
  auto replaced = callback ? std::make_shared<const std::function<void()>>(std::move(callback)) : nullptr;
  {
    const std::lock_guard lock(mutex_);
    replaced.swap(on_change_);
    told_ = false;
  }
  tell();
}

void RequestChannel::tell() {
  std::shared_ptr<const std::function<void()>> callback;
  {
    const std::lock_guard lock(mutex_);
    if (on_change_ == nullptr || (!closed_ && (told_ || events_.empty()))) return;
    told_ = true;
    callback = closed_ ? std::exchange(on_change_, nullptr) : on_change_;
  }
  try {
    (*callback)();
  } catch (...) {
    // One consumer's trouble is not the engine's; the event is there whenever it reads.
  }
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
  return take();
}

std::optional<TokenEvent> RequestChannel::poll(bool& over) {
  const std::lock_guard lock(mutex_);
  over = events_.empty() && closed_;
  return take();
}

std::optional<TokenEvent> RequestChannel::take() {
  told_ = false;
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
  TokenStream replaced(std::move(other));
  std::swap(channel_, replaced.channel_);
  return *this;
}
TokenStream::~TokenStream() { drop(); }

void TokenStream::drop() {
  const std::shared_ptr<RequestChannel> channel = std::exchange(channel_, nullptr);
  if (channel == nullptr) return;
  channel->cancel();
  channel->on_change({});
}

std::optional<TokenEvent> TokenStream::next() {
  bool timed_out = false;
  return channel_->pop(std::nullopt, timed_out);
}
std::optional<TokenEvent> TokenStream::next_for(std::chrono::milliseconds timeout, bool& timed_out) { return channel_->pop(timeout, timed_out); }
std::optional<TokenEvent> TokenStream::poll(bool& over) { return channel_->poll(over); }
void TokenStream::on_change(std::function<void()> callback) { channel_->on_change(std::move(callback)); }
void TokenStream::cancel() { channel_->cancel(); }
Status TokenStream::status() const { return channel_->status(); }
RequestStats TokenStream::stats() const { return channel_->stats(); }

}  // namespace espalier
