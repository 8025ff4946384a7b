// What a request asks of the sampler. Plain data; validated once, at the door.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace espalier {

struct SamplingParams {
  double temperature = 0.0;         // 0: greedy (argmax, ties to the lowest id); otherwise logits are divided by it
  int32_t top_k = 0;                // 0: off; keep the k most probable tokens
  double top_p = 1.0;               // keep the smallest set of most probable tokens whose mass reaches it
  double min_p = 0.0;               // keep tokens with at least min_p times the probability of the best one
  double presence_penalty = 0.0;    // subtracted once from the logit of every token already generated
  double frequency_penalty = 0.0;   // subtracted as often as the token was generated
  double repetition_penalty = 1.0;  // of tokens in prompt or reply: positive logits are divided by it, negative ones multiplied
  std::vector<std::pair<TokenId, float>> logit_bias = {};  // added to the logit
  uint64_t seed = 0;
  int32_t top_logprobs = -1;        // -1: none; otherwise the chosen token's and this many best tokens' log-probabilities

  bool greedy() const { return temperature == 0.0; }
  bool has_penalties() const { return presence_penalty != 0.0 || frequency_penalty != 0.0 || repetition_penalty != 1.0; }
};

inline constexpr int32_t kMaxTopLogprobs = 20;
inline constexpr size_t kMaxLogitBias = 1024;

// Every number finite and in its range, every bias below `vocab_size`; the error names the field, its value and the range.
Status validate(const SamplingParams& params, int64_t vocab_size);

}  // namespace espalier
