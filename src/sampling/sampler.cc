#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace espalier {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

float penalised(float logit, bool seen, int32_t times_generated, const SamplingParams& params) {
  if (seen && params.repetition_penalty != 1.0) {
    const auto factor = static_cast<float>(params.repetition_penalty);
    logit = logit > 0 ? logit / factor : logit * factor;
  }
  if (times_generated > 0) {
    logit -= static_cast<float>(params.presence_penalty + params.frequency_penalty * times_generated);
  }
  return logit;
}

// log(sum(exp(x))) in double, and the maximum it was shifted by.
double log_sum_exp(std::span<const float> logits) {
  float best = kNever;
  for (const float logit : logits) best = logit > best ? logit : best;
  if (best == kNever) return 0.0;
  double sum = 0.0;
  for (const float logit : logits) {
    if (logit > kNever) sum += std::exp(static_cast<double>(logit) - static_cast<double>(best));
  }
  return static_cast<double>(best) + std::log(sum);
}

}  // namespace

double Draw::uniform() const {
  const uint64_t bits = mix(mix(mix(seed) ^ choice) ^ position);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

TokenId argmax(std::span<const float> logits) {
  TokenId best = 0;
  float best_logit = kNever;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > best_logit) {
      best_logit = logits[i];
      best = static_cast<TokenId>(i);
    }
  }
  return best;
}

std::span<const float> Sampler::processed(std::span<const float> logits, const SamplingParams& params, const TokenCounts& counts,
                                          const TokenConstraint* constraint) {
  if (params.logit_bias.empty() && !params.has_penalties() && constraint == nullptr) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : params.logit_bias) adjusted_[static_cast<size_t>(token)] += bias;
  if (params.has_penalties()) {
    for (const auto& [token, times] : counts.reply()) {
      float& logit = adjusted_[static_cast<size_t>(token)];
      logit = penalised(logit, true, times, params);
    }
    counts.visit_prompt_only([&](TokenId token) {
      float& logit = adjusted_[static_cast<size_t>(token)];
      logit = penalised(logit, true, 0, params);
    });
  }
  if (constraint != nullptr) constraint->mask(adjusted_);
  return adjusted_;
}

bool Sampler::better(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.token < b.token; }

TokenId Sampler::draw_token(std::span<const float> logits, const SamplingParams& params, const Draw& draw) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > kNever) candidates_.push_back({logits[i], static_cast<TokenId>(i)});
  }
  if (candidates_.empty()) return 0;
  const auto keep_best = [&](size_t count) {
    if (count >= candidates_.size()) return;
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(count), candidates_.end(), better);
    candidates_.resize(count);
  };
  if (params.top_k > 0) keep_best(static_cast<size_t>(params.top_k));

  const float best = std::min_element(candidates_.begin(), candidates_.end(), better)->logit;
  const auto weight = [&](const Candidate& c) {
    return std::exp((static_cast<double>(c.logit) - static_cast<double>(best)) / params.temperature);
  };
  if (params.min_p > 0.0 && params.top_p >= 1.0) std::erase_if(candidates_, [&](const Candidate& c) { return weight(c) < params.min_p; });

  double total = 0.0;
  for (const Candidate& c : candidates_) total += weight(c);
  // Only the head of the order is needed: sort as much of it as the draw (or the nucleus) asks for.
  size_t sorted = 0;
  const auto sort_upto = [&](size_t count) {
    count = std::min(count, candidates_.size());
    if (count <= sorted) return;
    std::partial_sort(candidates_.begin() + static_cast<ptrdiff_t>(sorted), candidates_.begin() + static_cast<ptrdiff_t>(count),
                      candidates_.end(), better);
    sorted = count;
  };
  double mass = total;
  size_t kept = candidates_.size();
  if (params.top_p < 1.0) {
    mass = 0.0;
    for (kept = 0; kept < candidates_.size() && (kept == 0 || mass < params.top_p * total); ++kept) {
      if (kept == sorted) sort_upto(std::max<size_t>(64, sorted * 4));
      mass += weight(candidates_[kept]);
    }
    for (; kept > 1 && weight(candidates_[kept - 1]) < params.min_p; --kept) mass -= weight(candidates_[kept - 1]);
  }
  const double target = draw.uniform() * mass;
  double reached = 0.0;
  for (size_t i = 0; i < kept; ++i) {
    if (i == sorted) sort_upto(std::max<size_t>(64, sorted * 4));
    reached += weight(candidates_[i]);
    if (target < reached) return candidates_[i].token;
  }
  return candidates_[kept - 1].token;
}

Sample Sampler::sample(std::span<const float> logits, const SamplingParams& params, const TokenCounts& counts, const TokenConstraint* constraint,
                       const Draw& draw) {
  const std::span<const float> row = processed(logits, params, counts, constraint);
  Sample result;
  result.token = params.greedy() ? argmax(row) : draw_token(row, params, draw);
  if (params.top_logprobs >= 0) add_logprobs(result, logits, params.top_logprobs);
  return result;
}

Sample Sampler::forced(std::span<const float> logits, const SamplingParams& params, TokenId token) {
  Sample result;
  result.token = token;
  if (params.top_logprobs >= 0) add_logprobs(result, logits, params.top_logprobs);
  return result;
}

void Sampler::add_logprobs(Sample& sample, std::span<const float> logits, int32_t num_top) {
  const double normaliser = log_sum_exp(logits);
  const auto logprob = [&](TokenId token) { return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(token)]) - normaliser); };
  sample.logprob = logprob(sample.token);
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > kNever) candidates_.push_back({logits[i], static_cast<TokenId>(i)});
  }
  const size_t count = std::min(candidates_.size(), static_cast<size_t>(num_top));
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(count), candidates_.end(), better);
  for (size_t i = 0; i < count; ++i) sample.top.push_back({candidates_[i].token, logprob(candidates_[i].token)});
}

}  // namespace espalier
