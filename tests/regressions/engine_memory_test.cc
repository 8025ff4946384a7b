// The n-th allocation of the engine thread fails, for n from the first one on: whatever the engine is at, every request ends, the reason is
// told, and the process goes on.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <random>

#include "backend/backends_test_support.h"
#include "base/log.h"
#include "engine/choice_constraint.h"
#include "engine/engine.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/hooked_backend.h"
#include "tests/support/tiny_checkpoint.h"

namespace espalier::testing {
namespace {

class EngineMemory : public ::testing::Test {
 protected:
  EngineMemory()
      : directory_(make_tiny_checkpoint({.vocab_rows = 8192, .stop_ids = {8131}, .seed = 5})),
        checkpoint_(Checkpoint::open(directory_.path()).value()),
        tokenizer_(Tokenizer::load(std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano").value()) {
    set_log_level(LogLevel::kError);
  }

  struct Life {
    bool failed = false;
    EngineStats stats;
  };

  // An engine with little room, crowded by requests that use everything there is. The n-th allocation after its first pass has begun fails.
  Life live(int64_t n) {
    Life life;
    std::promise<void> submitted;
    const auto hook = [&, ready = submitted.get_future().share()](int64_t pass) {
      if (pass > 1) return;
      ready.wait();
      fail_allocation(n);
    };
    int failures = 0;
    const auto engine = Engine::open(checkpoint_, tokenizer_, hook_passes(make_cpu_backend({.threads = 1, .isa = {}}).value(), hook),
                                     {.context_length = 256,
                                      .max_sequences = 2,
                                      .cache_bytes = size_t{700} << 10,
                                      .max_rows = 64,
                                      .preempt_after_ms = 0.0,
                                      .on_failure = [&](const Error&) { ++failures; }})
                            .value();
    std::vector<TokenStream> streams;
    for (uint32_t i = 0; i < 5; ++i) {
      std::mt19937 random(i % 4);  // the last one resumes what the first has left
      Request r;
      r.prompt_ids.resize(100);
      for (TokenId& id : r.prompt_ids) id = std::uniform_int_distribution<TokenId>(0, 8128)(random);
      r.max_new_tokens = 12;
      r.num_choices = i == 1 ? 2 : 1;
      r.stop = {"a stop that never comes", "another"};
      r.sampling = {.temperature = 1.0, .presence_penalty = 0.5, .seed = i, .top_logprobs = 2};
      r.forced_ids = {11, 12};
      r.constraint = make_choice_constraint(*tokenizer_, {"read>\n", "write>\n"});
      streams.push_back(engine->submit(std::move(r)).value());
    }
    submitted.set_value();
    for (TokenStream& stream : streams) {
      bool timed_out = false;
      while (stream.next_for(std::chrono::seconds(60), timed_out).has_value()) {
      }
      EXPECT_FALSE(timed_out) << "allocation " << n;
      if (!stream.status().ok()) {
        life.failed = true;
        EXPECT_EQ(stream.status().error().code, ErrorCode::kInternal) << stream.status().error().message;
      }
    }
    life.stats = engine->stats();
    EXPECT_EQ(life.stats.requests_finished, life.stats.requests_submitted);
    EXPECT_EQ(engine->health().ok(), !life.failed) << "allocation " << n;
    return life;
  }

  TemporaryDirectory directory_;
  Checkpoint checkpoint_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(EngineMemory, AnyAllocationMayFail) {
  const Life whole = live(0);
  ASSERT_FALSE(whole.failed);
  EXPECT_GT(whole.stats.preemptions, 0);  // else less is tried than this test says
  EXPECT_GT(whole.stats.evictions, 0);
  EXPECT_GT(whole.stats.hot_tokens, 0);
  int64_t n = 1;
  int failed = 0;
  while (true) {
    const bool engine_failed = live(n).failed;
    if (!an_allocation_failed()) break;
    failed += engine_failed ? 1 : 0;  // a sort does without its buffer
    n += 1 + n / 40;
  }
  std::printf("%d engines failed in their first %lld allocations\n", failed, static_cast<long long>(n));
  EXPECT_GT(failed, 100);
}

}  // namespace
}  // namespace espalier::testing
