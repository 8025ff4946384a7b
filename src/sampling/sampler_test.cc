#include "sampling/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace espalier {
namespace {

using ::testing::HasSubstr;

// Draws many tokens at consecutive positions and returns how often each came.
std::map<TokenId, int> histogram(const std::vector<float>& logits, const SamplingParams& params, int draws, const TokenCounts& counts = {}) {
  Sampler sampler;
  std::map<TokenId, int> seen;
  for (int i = 0; i < draws; ++i) ++seen[sampler.sample(logits, params, counts, nullptr, {.seed = 7, .position = static_cast<uint64_t>(i)}).token];
  return seen;
}

TEST(Sampler, GreedyTiesGoToTheLowestId) {
  Sampler sampler;
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 3, 2}, {}, {}, nullptr, {}).token, 1);
}

TEST(Sampler, GreedyIgnoresNan) {
  Sampler sampler;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(sampler.sample(std::vector<float>{nan, 3, nan}, {}, {}, nullptr, {}).token, 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{nan, nan}, {.temperature = 1.0}, {}, nullptr, {}).token, 0);
}

TEST(Sampler, FrequenciesFollowTheSoftmaxOfLogitsOverTemperature) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const auto seen = histogram(logits, {.temperature = temperature}, 20000);
    double total = 0;
    for (const float x : logits) total += std::exp(x / temperature);
    for (TokenId t = 0; t < 3; ++t) {
      const double expected = std::exp(logits[static_cast<size_t>(t)] / temperature) / total;
      EXPECT_NEAR(seen.at(t) / 20000.0, expected, 0.015) << "token " << t << " at temperature " << temperature;
    }
  }
}

TEST(Sampler, TopKKeepsTheBestAndBreaksTiesByLowestId) {
  const auto seen = histogram({1, 2, 2, 2, 0}, {.temperature = 1.0, .top_k = 2}, 500);
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen.contains(1) && seen.contains(2));
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesTheMass) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  EXPECT_EQ(histogram(logits, {.temperature = 1.0, .top_p = 0.5}, 500).size(), 1u);
  EXPECT_EQ(histogram(logits, {.temperature = 1.0, .top_p = 0.51}, 2000).size(), 2u);
  EXPECT_EQ(histogram(logits, {.temperature = 1.0, .top_p = 0.0}, 500).size(), 1u);
}

TEST(Sampler, MinPIsRelativeToTheBest) {
  const std::vector<float> logits = {std::log(0.6f), std::log(0.31f), std::log(0.09f)};
  EXPECT_EQ(histogram(logits, {.temperature = 1.0, .min_p = 0.5}, 2000).size(), 2u);
}

TEST(Sampler, MinPIsAppliedToWhatTopPLeaves) {
  std::vector<float> logits = {std::log(0.5f), std::log(0.2f)};
  for (int i = 0; i < 5; ++i) logits.push_back(std::log(0.06f));
  EXPECT_EQ(histogram(logits, {.temperature = 1.0, .top_p = 0.69, .min_p = 0.2}, 2000).size(), 2u);  // the nucleus of all mass: two tokens
  EXPECT_EQ(histogram(logits, {.temperature = 1.0, .top_p = 0.9, .min_p = 0.2}, 2000).size(), 2u);   // five, three of them below min-p
}

TEST(Sampler, AForcedTokenHasItsOwnLogprob) {
  Sampler sampler;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Sample sample = sampler.forced(std::vector<float>{std::log(0.7f), std::log(0.3f), nan}, {.top_logprobs = 3}, 1);
  EXPECT_EQ(sample.token, 1);
  EXPECT_NEAR(sample.logprob, std::log(0.3), 1e-5);
  EXPECT_EQ(sample.top.size(), 2u);
}

TEST(Sampler, TheSameDecisionDrawsTheSameNumber) {
  std::mt19937 random(3);
  std::vector<float> logits(5000);
  for (float& x : logits) x = std::normal_distribution<float>(0, 3)(random);
  Sampler one, other;
  const SamplingParams params{.temperature = 0.9, .top_k = 200, .top_p = 0.95, .min_p = 0.001};
  for (uint64_t position = 0; position < 50; ++position) {
    const Draw draw{.seed = 11, .choice = 1, .position = position};
    const TokenId token = one.sample(logits, params, {}, nullptr, draw).token;
    other.sample(logits, {.temperature = 2.0}, {}, nullptr, {.seed = position});  // other work in between
    EXPECT_EQ(other.sample(logits, params, {}, nullptr, draw).token, token);
  }
}

TEST(Draw, NumbersOfDifferentDecisionsDiffer) {
  std::map<double, int> seen;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (uint32_t choice = 0; choice < 10; ++choice) {
      for (uint64_t position = 0; position < 10; ++position) ++seen[Draw{seed, choice, position}.uniform()];
    }
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Sampler, PenaltiesCountPromptAndReplyAsDocumented) {
  Sampler sampler;
  const std::vector<TokenId> prompt = {0};
  TokenCounts counts(prompt);
  counts.add(1);
  counts.add(1);
  const std::vector<float> logits = {2.0f, 2.0f, 1.0f};
  // Presence and frequency look at the reply alone.
  EXPECT_EQ(sampler.sample(logits, {.presence_penalty = 1.5}, counts, nullptr, {}).token, 0);
  EXPECT_EQ(sampler.sample(std::vector<float>{0.0f, 2.0f, 1.0f}, {.frequency_penalty = 0.4}, counts, nullptr, {}).token, 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{0.0f, 2.0f, 1.0f}, {.frequency_penalty = 0.6}, counts, nullptr, {}).token, 2);
  // Repetition looks at both.
  EXPECT_EQ(sampler.sample(logits, {.repetition_penalty = 3.0}, counts, nullptr, {}).token, 2);
}

TEST(Sampler, BiasIsAddedAndLogprobsAreTheModelsOwn) {
  Sampler sampler;
  const std::vector<float> logits = {std::log(0.7f), std::log(0.2f), std::log(0.1f)};
  const Sample sample = sampler.sample(logits, {.logit_bias = {{2, 50.0f}}, .top_logprobs = 2}, {}, nullptr, {});
  EXPECT_EQ(sample.token, 2);
  EXPECT_NEAR(sample.logprob, std::log(0.1), 1e-5);
  ASSERT_EQ(sample.top.size(), 2u);
  EXPECT_EQ(sample.top[0].token, 0);
  EXPECT_NEAR(sample.top[0].logprob, std::log(0.7), 1e-5);
}

class OnlyToken : public TokenConstraint {
 public:
  explicit OnlyToken(TokenId token) : token_(token) {}
  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<OnlyToken>(token_); }
  void mask(std::span<float> logits) const override {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (static_cast<TokenId>(i) != token_) logits[i] = -std::numeric_limits<float>::infinity();
    }
  }
  void advance(TokenId) override {}

 private:
  TokenId token_;
};

TEST(Sampler, AConstraintDecidesGreedyAndSampled) {
  Sampler sampler;
  const OnlyToken constraint(2);
  const std::vector<float> logits = {5, 4, -3};
  EXPECT_EQ(sampler.sample(logits, {}, {}, &constraint, {}).token, 2);
  EXPECT_EQ(sampler.sample(logits, {.temperature = 1.0}, {}, &constraint, {}).token, 2);
}

TEST(SamplingParams, EveryNumberIsCheckedAndNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto message = [](const SamplingParams& params) {
    const Status status = validate(params, 100);
    return status.ok() ? std::string("ok") : status.error().message;
  };
  EXPECT_EQ(message({}), "ok");
  EXPECT_THAT(message({.temperature = -1}), HasSubstr("temperature"));
  EXPECT_THAT(message({.temperature = nan}), HasSubstr("temperature"));
  EXPECT_THAT(message({.top_k = -1}), HasSubstr("top_k"));
  EXPECT_THAT(message({.top_p = 1.5}), HasSubstr("top_p"));
  EXPECT_THAT(message({.min_p = -0.1}), HasSubstr("min_p"));
  EXPECT_THAT(message({.repetition_penalty = 0}), HasSubstr("repetition_penalty"));
  EXPECT_THAT(message({.logit_bias = {{100, 1.0f}}}), HasSubstr("token 100"));
  EXPECT_THAT(message({.top_logprobs = 21}), HasSubstr("top_logprobs"));
}

}  // namespace
}  // namespace espalier
