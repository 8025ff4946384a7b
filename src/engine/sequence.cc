#include "engine/sequence.h"

#include <algorithm>

namespace espalier {

Sequence::Sequence(std::shared_ptr<RequestContext> shared, int32_t choice_index, std::shared_ptr<const Tokenizer> tokenizer)
    : context(std::move(shared)),
      choice(choice_index),
      queued_since(context->submitted),
      detokenizer_(std::move(tokenizer), SkipSpecial::kYes),
      stops_(context->request.stop) {
  if (choice == 0 && context->request.sampling.has_penalties()) context->prompt_counts = TokenCounts(context->prompt.ids);
  counts = context->prompt_counts;
  if (context->request.constraint != nullptr) constraint = context->request.constraint->clone();
}

std::optional<FinishReason> Sequence::accept(const Sample& sample, std::span<const TokenId> stop_ids) {
  const Request& request = context->request;
  if (reply_length() == 0 && context->stats.first_token_ms == 0.0) context->stats.first_token_ms = ms_between(context->submitted, Clock::now());
  ids.push_back(sample.token);
  ++context->stats.output_tokens;
  counts.add(sample.token);
  if (constraint != nullptr) constraint->advance(sample.token);

  const bool stop_token = !request.ignore_eos && std::find(stop_ids.begin(), stop_ids.end(), sample.token) != stop_ids.end();
  TokenEvent event{.choice = choice, .token = sample.token, .text = {}, .logprob = sample.logprob, .top = sample.top, .finish = {}};
  std::optional<FinishReason> finished;
  if (stop_token) {
    finished = FinishReason::kStop;
  } else {
    StopMatcher::Result shown = stops_.push(detokenizer_.push(sample.token));
    event.text = std::move(shown.text);
    if (shown.stopped) {
      finished = FinishReason::kStop;
      stops_ = {};
      detokenizer_.flush();
    } else if (static_cast<int64_t>(ids.size()) >= max_tokens) {
      finished = FinishReason::kLength;
    }
  }
  context->channel->push(std::move(event));
  return finished;
}

void Sequence::finish(FinishReason reason) {
  std::string rest;
  if (reason != FinishReason::kCancelled) {
    StopMatcher::Result last = stops_.push(detokenizer_.flush());
    rest = std::move(last.text);
    if (!last.stopped) rest += stops_.flush();
  }
  context->channel->push({.choice = choice, .token = -1, .text = std::move(rest), .logprob = 0.0f, .top = {}, .finish = reason});
}

}  // namespace espalier
