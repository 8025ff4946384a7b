// What people meet when a pass of the engine fails: every request ends with the reason, the process goes on, and nobody waits for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>
#include <random>
#include <stdexcept>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "engine/engine.h"
#include "tests/support/hooked_backend.h"

namespace espalier::testing {
namespace {

using ::testing::HasSubstr;

class EngineFailure : public ::testing::Test {
 protected:
  EngineFailure() { set_log_level(LogLevel::kError); }

  std::unique_ptr<Engine> engine(PassHook hook, EngineOptions options = {}) {
    const std::string directory = std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano";
    options.context_length = 4096;
    options.cache_bytes = size_t{64} << 20;
    options.on_failure = [this](const Error& error) {
      ++failures_;
      failure_ = error.message;
    };
    return Engine::open(Checkpoint::open(directory).value(), Tokenizer::load(directory).value(),
                        hook_passes(make_cpu_backend({.threads = 2, .isa = {}}).value(), std::move(hook)), options)
        .value();
  }

  static Request request(uint32_t seed, size_t prompt, int64_t reply) {
    std::mt19937 random(seed);
    Request r;
    r.prompt_ids.resize(prompt);
    for (TokenId& id : r.prompt_ids) id = std::uniform_int_distribution<TokenId>(0, 8128)(random);
    r.max_new_tokens = reply;
    r.ignore_eos = true;
    return r;
  }

  struct End {
    int tokens = 0;
    Status status = Ok{};
  };
  static End drain(TokenStream& stream) {
    End end;
    while (const auto event = stream.next()) end.tokens += event->token >= 0 ? 1 : 0;
    end.status = stream.status();
    return end;
  }

  static void expect_failed(const Status& status, const std::string& reason) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kInternal);
    EXPECT_THAT(status.error().message, HasSubstr(reason));
  }

  // What holds for every engine that has failed. To be called when a stream has seen the failure.
  void expect_dead(Engine& engine, const std::string& reason) {
    expect_failed(engine.health(), reason);
    const auto later = engine.submit(request(99, 10, 3));
    ASSERT_FALSE(later.ok());
    EXPECT_EQ(later.error().code, ErrorCode::kInternal);
    EXPECT_EQ(later.error().message, engine.health().error().message);
    EXPECT_TRUE(engine.cached_prefixes().empty());
    const EngineStats stats = engine.stats();
    EXPECT_EQ(stats.running, 0);
    EXPECT_EQ(stats.queued, 0);
    EXPECT_EQ(stats.requests_finished, stats.requests_submitted);
  }

  // Of engines that are gone: their threads are joined.
  void expect_told_once(const std::string& reason) {
    EXPECT_EQ(failures_, 1);
    EXPECT_THAT(failure_, HasSubstr(reason));
  }

  int failures_ = 0;
  std::string failure_;
};

TEST_F(EngineFailure, InTheFirstPass) {
  auto broken = engine([](int64_t) { throw std::runtime_error("the third disk is on fire"); });
  EXPECT_TRUE(broken->health().ok());
  TokenStream stream = broken->submit(request(1, 100, 10)).value();
  const End end = drain(stream);
  EXPECT_EQ(end.tokens, 0);
  expect_failed(end.status, "the third disk is on fire");
  expect_dead(*broken, "the third disk is on fire");
  broken.reset();
  expect_told_once("the third disk is on fire");
}

TEST_F(EngineFailure, InsideALongPrompt) {
  auto broken = engine([](int64_t pass) { if (pass == 3) throw std::bad_alloc(); });
  TokenStream stream = broken->submit(request(1, 3000, 10)).value();
  expect_failed(drain(stream).status, "bad_alloc");
  expect_dead(*broken, "bad_alloc");
  broken.reset();
  expect_told_once("bad_alloc");
}

TEST_F(EngineFailure, WhileDecoding_WhatWasSaidIsKept) {
  auto broken = engine([](int64_t pass) { if (pass == 6) throw std::bad_alloc(); });
  TokenStream stream = broken->submit(request(1, 50, 100)).value();
  const End end = drain(stream);
  EXPECT_EQ(end.tokens, 5);
  expect_failed(end.status, "bad_alloc");
  expect_dead(*broken, "bad_alloc");
}

TEST_F(EngineFailure, WithWhatIsNoException) {
  auto broken = engine([](int64_t pass) { if (pass == 2) throw 7; });
  TokenStream stream = broken->submit(request(1, 50, 100)).value();
  expect_failed(drain(stream).status, "unknown type");
  expect_dead(*broken, "unknown type");
}

// One runs, another reply of the same request waits for its prompt, others wait for a place, one was just handed over.
TEST_F(EngineFailure, WhileOthersAreQueued) {
  std::promise<void> submitted;
  auto broken = engine(
      [&, ready = submitted.get_future().share()](int64_t pass) {
        if (pass < 2) return;
        ready.wait();
        throw std::runtime_error("nothing works");
      },
      {.max_sequences = 1});
  std::vector<TokenStream> streams;
  std::atomic<int> told = 0;
  for (uint32_t i = 0; i < 5; ++i) {
    Request r = request(i, 40, 100);
    if (i == 0) r.num_choices = 3;
    streams.push_back(broken->submit(std::move(r)).value());
    streams.back().on_change([&] { ++told; });
  }
  submitted.set_value();
  for (TokenStream& stream : streams) expect_failed(drain(stream).status, "nothing works");
  expect_dead(*broken, "nothing works");
  broken.reset();
  EXPECT_GE(told, 5);  // each by its own callback, which may come after the end of its stream was read
  expect_told_once("nothing works");
}

TEST_F(EngineFailure, WithOneSetAside) {
  auto broken = engine([](int64_t pass) { if (pass == 12) throw std::runtime_error("nothing works"); },
                       {.max_sequences = 1, .preempt_after_ms = 0.0});
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 3; ++i) streams.push_back(broken->submit(request(i, 40, 500)).value());
  for (TokenStream& stream : streams) expect_failed(drain(stream).status, "nothing works");
  EXPECT_GT(broken->stats().preemptions, 0);
  expect_dead(*broken, "nothing works");
}

// Who waits for the list of prefixes while the pass fails gets an answer.
TEST_F(EngineFailure, WhileSomebodyAsksForThePrefixes) {
  std::promise<void> asking;
  auto broken = engine([&, asked = asking.get_future().share()](int64_t) {
    asked.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    throw std::runtime_error("nothing works");
  });
  TokenStream stream = broken->submit(request(1, 40, 10)).value();
  auto listed = std::async(std::launch::async, [&] {
    asking.set_value();
    return broken->cached_prefixes();
  });
  ASSERT_EQ(listed.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_TRUE(listed.get().empty());
  expect_failed(drain(stream).status, "nothing works");
}

TEST_F(EngineFailure, RequestsThatEndedBeforeAreNotTouched) {
  auto broken = engine([](int64_t pass) { if (pass == 8) throw std::bad_alloc(); });
  TokenStream good = broken->submit(request(1, 50, 3)).value();
  const End end = drain(good);
  EXPECT_TRUE(end.status.ok());
  EXPECT_EQ(end.tokens, 3);
  EXPECT_FALSE(broken->cached_prefixes().empty());
  TokenStream bad = broken->submit(request(2, 50, 30)).value();
  expect_failed(drain(bad).status, "bad_alloc");
  EXPECT_TRUE(good.status().ok());
}

TEST_F(EngineFailure, NeverHappensToAnEngineThatIsClosed) {
  auto fine = engine([](int64_t) {});
  TokenStream stream = fine->submit(request(1, 50, 1000)).value();
  ASSERT_TRUE(stream.next().has_value());
  fine.reset();
  EXPECT_EQ(drain(stream).status.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(failures_, 0);
}

}  // namespace
}  // namespace espalier::testing
