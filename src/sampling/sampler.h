// From one row of logits to one token. Pure: the same row, parameters, counts and draw give the same token, whatever else is going on.
// Used by one thread; keeps scratch memory between calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "sampling/sampling_params.h"
#include "sampling/token_constraint.h"
#include "sampling/token_counts.h"

namespace espalier {

// Names the random number of one decision: it belongs to the request's seed, the choice (of `n`) and the position in the reply, so the
// same decision draws the same number in every schedule, batch, draft tree or restart.
struct Draw {
  uint64_t seed = 0;
  uint32_t choice = 0;
  uint64_t position = 0;

  double uniform() const;  // in [0, 1)
};

struct TokenLogprob {
  TokenId token;
  float logprob;
};

struct Sample {
  TokenId token = 0;
  float logprob = 0.0f;                  // of the model's own distribution (before bias, penalties and temperature); if asked for
  std::vector<TokenLogprob> top;         // the best tokens of that distribution, best first; params.top_logprobs of them
};

class Sampler {
 public:
  // logits: F32 of the addressable vocabulary (padding rows cut off), untouched. Order: bias, penalties, constraint, temperature,
  // top-k, top-p, min-p, draw. Ties go to the lowest id. NaN logits count as -infinity; if nothing is left, token 0 is chosen.
  Sample sample(std::span<const float> logits, const SamplingParams& params, const TokenCounts& counts, const TokenConstraint* constraint,
                const Draw& draw);
  // A token chosen elsewhere (teacher forcing), with the log-probabilities the model gives it.
  Sample forced(std::span<const float> logits, const SamplingParams& params, TokenId token);

 private:
  struct Candidate {
    float logit;
    TokenId token;
  };
  static bool better(const Candidate& a, const Candidate& b);
  std::span<const float> processed(std::span<const float> logits, const SamplingParams& params, const TokenCounts& counts,
                                   const TokenConstraint* constraint);
  TokenId draw_token(std::span<const float> logits, const SamplingParams& params, const Draw& draw);
  void add_logprobs(Sample& sample, std::span<const float> logits, int32_t num_top);

  std::vector<float> adjusted_;
  std::vector<Candidate> candidates_;
};

// Index of the largest value, ties to the lowest; NaN counts as -infinity. Not empty.
TokenId argmax(std::span<const float> logits);

}  // namespace espalier
