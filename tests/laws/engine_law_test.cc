// Laws 2, 3, 6, 7, 8 and 10 through the whole engine: whatever was cached, batched, set aside or evicted, a request gets the tokens that plain
// decoding gives, token by token, without engine or cache.
#include <gtest/gtest.h>

#include <random>

#include "base/log.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "sampling/sampler.h"
#include "tests/support/model_harness.h"
#include "tests/support/tiny_checkpoint.h"

namespace espalier::testing {
namespace {

constexpr int32_t kReply = 24;

class EngineLaw : public ::testing::TestWithParam<BackendCase> {
 protected:
  EngineLaw() : directory_(make_tiny_checkpoint({.vocab_rows = 8192, .stop_ids = {8131}, .seed = 5})) {
    tokenizer_ = Tokenizer::load(std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano").value();
    set_log_level(LogLevel::kError);
  }

  std::unique_ptr<Engine> engine(EngineOptions options = {}) const {
    if (options.context_length == 0) options.context_length = 1024;
    if (options.cache_bytes == 0) options.cache_bytes = size_t{64} << 20;
    options.max_rows = 128;
    const Checkpoint checkpoint = Checkpoint::open(directory_.path()).value();
    return Engine::open(checkpoint, tokenizer_, GetParam().make(), options).value();
  }

  static std::vector<TokenId> random_ids(uint32_t seed, size_t count) {
    std::mt19937 random(seed);
    std::vector<TokenId> ids(count);
    for (TokenId& id : ids) id = std::uniform_int_distribution<TokenId>(0, 8128)(random);
    return ids;
  }

  static Request request(std::vector<TokenId> prompt, int64_t reply = kReply) {
    Request r;
    r.prompt_ids = std::move(prompt);
    r.max_new_tokens = reply;
    r.ignore_eos = true;
    return r;
  }

  static std::vector<TokenId> drain(TokenStream& stream, int32_t choice = 0) {
    std::vector<TokenId> ids;
    while (auto event = stream.next()) {
      if (event->choice == choice && event->token >= 0) ids.push_back(event->token);
    }
    EXPECT_TRUE(stream.status().ok()) << stream.status().error().message;
    return ids;
  }

  static std::vector<TokenId> reply_of(Engine& engine, Request r) {
    TokenStream stream = engine.submit(std::move(r)).value();
    return drain(stream);
  }

  // Greedy decoding by hand.
  std::vector<TokenId> plain(const std::vector<TokenId>& prompt, int32_t reply = kReply) const {
    ModelHarness harness(GetParam(), directory_.path(), {.max_tokens = 1024, .max_rows = 512});
    std::vector<TokenId> ids;
    ConstTensorView logits = harness.feed(0, prompt);
    while (true) {
      const int64_t rows = logits.shape[0], width = logits.shape[1];
      ids.push_back(argmax(std::span(logits.as<float>() + (rows - 1) * width, tokenizer_->vocab_size())));
      if (static_cast<int32_t>(ids.size()) == reply) return ids;
      logits = harness.feed(0, std::span(&ids.back(), 1));
    }
  }

  TemporaryDirectory directory_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

INSTANTIATE_TEST_SUITE_P(Backends, EngineLaw, ::testing::ValuesIn(test_backends()), [](const auto& instance) { return instance.param.name; });

TEST_P(EngineLaw, RepliesAreThoseOfPlainDecoding) {
  const auto prompt = random_ids(1, 150);
  EXPECT_EQ(reply_of(*engine(), request(prompt)), plain(prompt));
}

TEST_P(EngineLaw, AResumedConversationRepliesLikeAColdOne) {
  const auto warm = engine();
  std::vector<TokenId> conversation = random_ids(2, 70);
  for (uint32_t turn = 0; turn < 4; ++turn) {
    TokenStream stream = warm->submit(request(conversation)).value();
    const std::vector<TokenId> reply = drain(stream);
    EXPECT_EQ(reply, plain(conversation)) << "turn " << turn;
    if (turn > 0) {
      EXPECT_GE(stream.stats().hot_tokens, static_cast<int64_t>(conversation.size()) - 40) << "turn " << turn;
    }
    conversation.insert(conversation.end(), reply.begin(), reply.end());
    const auto more = random_ids(100 + turn, 39);
    conversation.insert(conversation.end(), more.begin(), more.end());
  }
  const EngineStats stats = warm->stats();
  EXPECT_EQ(stats.hot_tokens + stats.computed_tokens, stats.prompt_tokens);
  EXPECT_GT(stats.hot_tokens, 0);
}

TEST_P(EngineLaw, BatchedRequestsReplyAsAlone) {
  const auto busy = engine();
  std::vector<std::vector<TokenId>> prompts;
  std::vector<TokenStream> streams;
  for (const size_t length : {1, 127, 128, 129, 259}) {
    prompts.push_back(random_ids(static_cast<uint32_t>(length), length));
    streams.push_back(busy->submit(request(prompts.back())).value());
  }
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(drain(streams[i]), plain(prompts[i])) << prompts[i].size();
}

TEST_P(EngineLaw, PreemptedSequencesReplyAsUninterrupted) {
  const auto crowded = engine({.max_sequences = 1, .preempt_after_ms = 0.0});
  std::vector<std::vector<TokenId>> prompts;
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 3; ++i) {
    prompts.push_back(random_ids(50 + i, 90));
    streams.push_back(crowded->submit(request(prompts.back())).value());
  }
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(drain(streams[i]), plain(prompts[i]));
  const EngineStats stats = crowded->stats();
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_EQ(stats.hot_tokens + stats.computed_tokens, stats.prompt_tokens);
  EXPECT_EQ(stats.running, 0);
}

TEST_P(EngineLaw, EvictedPrefixesAreRecomputedToTheSameBytes) {
  const size_t narrow_bytes = GetParam().name == "reference" ? size_t{1000} << 10 : size_t{500} << 10;  // F32 pages against BF16 ones
  const auto narrow = engine({.max_sequences = 2, .cache_bytes = narrow_bytes});
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 6; ++i) {
      const auto prompt = random_ids(70 + i, 130);
      EXPECT_EQ(reply_of(*narrow, request(prompt)), plain(prompt));
    }
  }
  const EngineStats stats = narrow->stats();
  EXPECT_GT(stats.evictions, 0);
  EXPECT_EQ(stats.evictions, stats.evictions_by_reason.at("sequence") + stats.evictions_by_reason.at("snapshot") +
                                 stats.evictions_by_reason.at("taken") + stats.evictions_by_reason.at("cleared"));
  EXPECT_LE(stats.cache_bytes, narrow_bytes);
}

// Law 10. Special tokens are left out of a reply's text; ids that only make sense together arrive in whole characters.
TEST_P(EngineLaw, StreamedTextJoinedIsTheTextDecodedAtOnce) {
  const auto streaming = engine();
  for (uint32_t seed = 30; seed < 36; ++seed) {
    Request r = request(random_ids(seed, 60), 64);
    r.sampling = {.temperature = 3.0, .seed = seed};  // near random ids: halves of characters and control tokens among them
    TokenStream stream = streaming->submit(std::move(r)).value();
    std::vector<TokenId> ids;
    std::string text;
    while (auto event = stream.next()) {
      if (event->token >= 0) ids.push_back(event->token);
      EXPECT_TRUE(is_valid_utf8(event->text));
      text += event->text;
    }
    EXPECT_EQ(text, tokenizer_->decode(ids, SkipSpecial::kYes)) << "seed " << seed;
  }
}

TEST_P(EngineLaw, ChoicesShareThePromptAndAreReproducible) {
  Request sampled = request(random_ids(9, 80));
  sampled.num_choices = 3;
  sampled.sampling = {.temperature = 1.5, .presence_penalty = 0.5, .seed = 4};
  const auto run = [&](Engine& e) {
    TokenStream stream = e.submit(sampled).value();
    std::array<std::vector<TokenId>, 3> replies;
    while (auto event = stream.next()) {
      if (event->token >= 0) replies[static_cast<size_t>(event->choice)].push_back(event->token);
    }
    return replies;
  };
  const auto first = engine();
  const auto replies = run(*first);
  EXPECT_EQ(replies[1].size(), static_cast<size_t>(kReply));
  EXPECT_NE(replies[0], replies[1]);
  EXPECT_EQ(run(*first), replies);                            // from the cache
  EXPECT_EQ(run(*engine({.max_sequences = 1})), replies);     // one after the other
}

// Law 8, and pages of another size.
TEST(EngineThreads, OneThreadRepliesAsMany) {
  set_log_level(LogLevel::kError);
  const TemporaryDirectory directory = make_tiny_checkpoint({.vocab_rows = 8192, .stop_ids = {8131}, .seed = 6});
  const auto tokenizer = Tokenizer::load(std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano").value();
  std::mt19937 random(8);
  std::vector<TokenId> prompt(300);
  for (TokenId& id : prompt) id = std::uniform_int_distribution<TokenId>(0, 8128)(random);
  for (const cpu::KernelTable* table : cpu::available_tables()) {
    std::vector<TokenId> first;
    for (const int threads : {1, 2, 3}) {
      for (const int32_t page_size : {64, 128}) {
        const Checkpoint checkpoint = Checkpoint::open(directory.path()).value();
        const auto engine = Engine::open(checkpoint, tokenizer, make_cpu_backend({.threads = threads, .isa = table->name}).value(),
                                         {.context_length = 1024, .cache_bytes = size_t{64} << 20, .page_size = page_size}).value();
        Request request;
        request.prompt_ids = prompt;
        request.max_new_tokens = 30;
        request.ignore_eos = true;
        TokenStream stream = engine->submit(std::move(request)).value();
        std::vector<TokenId> ids;
        while (auto event = stream.next()) {
          if (event->token >= 0) ids.push_back(event->token);
        }
        if (first.empty()) first = ids;
        EXPECT_EQ(ids, first) << table->name << ", " << threads << " threads, pages of " << page_size;
      }
    }
  }
}

}  // namespace
}  // namespace espalier::testing
