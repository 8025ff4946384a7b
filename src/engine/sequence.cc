#include "engine/sequence.h"

#include <algorithm>

namespace espalier {

Sequence::Sequence(std::shared_ptr<RequestContext> shared, int32_t choice_index, std::shared_ptr<const Tokenizer> tokenizer)
    : context(std::move(shared)),
      choice(choice_index),
      queued_since(context->submitted),
      tokenizer_(std::move(tokenizer)),
      detokenizer_(tokenizer_, SkipSpecial::kYes),
      stops_(context->request.stop) {
  if (choice == 0 && context->request.sampling.has_penalties()) context->prompt_counts = TokenCounts(context->prompt.ids);
  counts = context->prompt_counts;
  if (context->request.constraint != nullptr) constraint = context->request.constraint->clone();
}

std::optional<FinishReason> Sequence::accept(const Sample& sample, std::span<const TokenId> stop_ids) {
  const Request& request = context->request;
  const bool forced = static_cast<size_t>(reply_length()) < request.forced_ids.size();
  if (reply_length() == 0 && context->stats.first_token_ms == 0.0) context->stats.first_token_ms = ms_between(context->submitted, Clock::now());
  ids.push_back(sample.token);
  ++context->stats.output_tokens;
  counts.add(sample.token);
  if (constraint != nullptr && !forced) constraint->advance(sample.token);

  const bool stop_token = !request.ignore_eos && std::find(stop_ids.begin(), stop_ids.end(), sample.token) != stop_ids.end();
  TokenEvent event{.choice = choice, .token = sample.token, .text = {}, .logprob = sample.logprob, .top = sample.top, .finish = {}, .tokens_shown = 0};
  std::optional<FinishReason> finished;
  if (stop_token) {
    finished = FinishReason::kStop;
  } else {
    held_.push_back({.begin = decoded_bytes_, .has_text = !tokenizer_->is_special(sample.token) && !tokenizer_->token_bytes(sample.token).empty()});
    const std::string piece = detokenizer_.push(sample.token);
    decoded_bytes_ += piece.size();
    StopMatcher::Result shown = stops_.push(piece);
    event.text = show(std::move(shown.text));
    if (shown.stopped) {
      finished = FinishReason::kStop;
      stops_ = {};
      detokenizer_.flush();
    } else if (static_cast<int64_t>(ids.size()) >= max_tokens) {
      finished = FinishReason::kLength;
    }
  }
  event.tokens_shown = tokens_shown_;
  context->channel->push(std::move(event));
  return finished;
}

std::string Sequence::show(std::string text) {
  shown_bytes_ += text.size();
  while (!held_.empty() && (held_.front().begin < shown_bytes_ || (!held_.front().has_text && held_.front().begin == shown_bytes_))) {
    held_.pop_front();
    ++tokens_shown_;
  }
  return text;
}

void Sequence::finish(FinishReason reason) {
  std::string rest;
  if (reason != FinishReason::kCancelled) {
    StopMatcher::Result last = stops_.push(detokenizer_.flush());
    rest = std::move(last.text);
    if (!last.stopped) rest += stops_.flush();
  }
  rest = show(std::move(rest));
  context->channel->push(
      {.choice = choice, .token = -1, .text = std::move(rest), .logprob = 0.0f, .top = {}, .finish = reason, .tokens_shown = tokens_shown_});
}

}  // namespace espalier
