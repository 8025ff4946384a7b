// What people meet when they talk to the engine: refusals with numbers, cancellation in every phase, stop strings, hot conversations of
// every length. Field cases by id in the names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <random>
#include <set>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "engine/choice_constraint.h"
#include "engine/engine.h"
#include "tests/support/hooked_backend.h"

namespace espalier::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string& nano_directory() {
  static const std::string path = std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano";
  return path;
}

std::unique_ptr<Engine> nano_engine(EngineOptions options = {}, PassHook hook = {}) {
  set_log_level(LogLevel::kError);
  if (options.cache_bytes == 0) options.cache_bytes = size_t{256} << 20;
  if (options.context_length == 0) options.context_length = 16384;
  const Checkpoint checkpoint = Checkpoint::open(nano_directory()).value();
  std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 2, .isa = {}}).value();
  if (hook) backend = hook_passes(std::move(backend), std::move(hook));
  return Engine::open(checkpoint, Tokenizer::load(nano_directory()).value(), std::move(backend), options).value();
}

std::vector<TokenId> random_ids(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::vector<TokenId> ids(count);
  for (TokenId& id : ids) id = std::uniform_int_distribution<TokenId>(0, 8128)(random);
  return ids;
}

Request request(std::vector<TokenId> prompt, int64_t reply) {
  Request r;
  r.prompt_ids = std::move(prompt);
  r.max_new_tokens = reply;
  r.ignore_eos = true;
  return r;
}

struct Answer {
  std::vector<TokenId> ids;
  std::string text;
  std::optional<FinishReason> finish;
  RequestStats stats;
};

Answer answer(TokenStream stream) {
  Answer a;
  while (auto event = stream.next()) {
    if (event->token >= 0) a.ids.push_back(event->token);
    a.text += event->text;
    if (event->finish.has_value()) a.finish = event->finish;
  }
  EXPECT_TRUE(stream.status().ok()) << stream.status().error().message;
  a.stats = stream.stats();
  return a;
}

TEST(EngineRequests, PromptsBeyondTheContextAreRefusedWithBothNumbers_H1_H2) {
  const auto engine = nano_engine({.context_length = 100});
  for (const size_t length : {100, 101, 200}) {
    const auto refused = engine->submit(request(random_ids(1, length), 1));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kContextLength);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr(std::to_string(length)), HasSubstr("100")));
  }
  // The last token that fits is served and the reply ends there.
  const Answer last = answer(engine->submit(request(random_ids(1, 99), -1)).value());
  EXPECT_EQ(last.ids.size(), 1u);
  EXPECT_EQ(last.finish, FinishReason::kLength);
}

TEST(EngineRequests, EveryNumberIsChecked_L1_L2) {
  const auto engine = nano_engine();
  const auto message = [&](const std::function<void(Request&)>& spoil) {
    Request r = request(random_ids(1, 5), 3);
    spoil(r);
    const auto refused = engine->submit(std::move(r));
    return refused.ok() ? std::string("accepted") : refused.error().message;
  };
  EXPECT_THAT(message([](Request& r) { r.num_choices = 1000000000; }), HasSubstr("n: 1000000000"));
  EXPECT_THAT(message([](Request& r) { r.num_choices = 0; }), HasSubstr("n: 0"));
  EXPECT_THAT(message([](Request& r) { r.max_new_tokens = -2; }), HasSubstr("max_tokens"));
  EXPECT_THAT(message([](Request& r) { r.max_new_tokens = 0; }), HasSubstr("max_tokens"));
  EXPECT_THAT(message([](Request& r) { r.stop.assign(100, "x"); }), HasSubstr("stop"));
  EXPECT_THAT(message([](Request& r) { r.stop = {std::string(100000, 'x')}; }), HasSubstr("stop"));
  EXPECT_THAT(message([](Request& r) { r.prompt_ids = {8162}; }), HasSubstr("8162"));
  EXPECT_THAT(message([](Request& r) { r.prompt_ids = {-1}; }), HasSubstr("-1"));
  EXPECT_THAT(message([](Request& r) { r.prompt_ids.clear(); }), HasSubstr("empty"));
  EXPECT_THAT(message([](Request& r) { r.sampling.temperature = -1; }), HasSubstr("temperature"));
}

TEST(EngineRequests, TheContextIsWhatTheBudgetHoldsAndWhatIsEnforced_C13_H4) {
  const auto engine = nano_engine({.cache_bytes = size_t{6} << 20});
  const int64_t context = engine->context_length();
  EXPECT_LT(context, 16384);
  EXPECT_GT(context, 64);
  const auto refused = engine->submit(request(random_ids(1, static_cast<size_t>(context)), 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kContextLength);
  EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(context)));
  // Without a limit of its own a reply may take all that is left.
  Request unlimited = request(random_ids(1, static_cast<size_t>(context) - 20), -1);
  EXPECT_EQ(answer(engine->submit(std::move(unlimited)).value()).ids.size(), 20u);
}

TEST(EngineRequests, OpeningCanBeWatchedAndCancelled) {
  std::vector<double> told;
  nano_engine({.on_progress = [&](double fraction) {
    told.push_back(fraction);
    return true;
  }});
  EXPECT_EQ(told.front(), 0.0);
  EXPECT_EQ(told.back(), 1.0);
  const Checkpoint checkpoint = Checkpoint::open(nano_directory()).value();
  const auto cancelled = Engine::open(checkpoint, Tokenizer::load(nano_directory()).value(), make_cpu_backend({.threads = 2, .isa = {}}).value(),
                                      {.on_progress = [](double fraction) { return fraction < 0.5; }});
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
}

TEST(EngineRequests, AStreamMayOutliveItsEngine) {
  auto engine = nano_engine();
  TokenStream running = engine->submit(request(random_ids(2, 40), 4000)).value();
  ASSERT_TRUE(running.next().has_value());
  engine.reset();
  while (running.next().has_value()) {
  }
  EXPECT_EQ(running.status().error().code, ErrorCode::kCancelled);
  running.cancel();
}

// A prompt of thousands of tokens and a short one that comes later: the short one is answered long before the other begins.
TEST(EngineRequests, ALongPromptDoesNotHoldUpAShortOne) {
  const auto engine = nano_engine();
  TokenStream slow = engine->submit(request(random_ids(3, 12000), 2)).value();
  while (engine->stats().steps == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Answer quick = answer(engine->submit(request(random_ids(4, 20), 2)).value());
  EXPECT_EQ(quick.ids.size(), 2u);
  EXPECT_LT(engine->stats().computed_tokens, 12000);
  EXPECT_EQ(answer(std::move(slow)).ids.size(), 2u);
}

TEST(EngineRequests, ForcedTokensCarryTheirOwnLogprob) {
  const auto engine = nano_engine();
  Request r = request(random_ids(8, 30), 1);
  r.sampling.top_logprobs = 1;
  const TokenId best = answer(engine->submit(r).value()).ids[0];
  r.forced_ids = {best == 11 ? 12 : 11};
  TokenStream stream = engine->submit(r).value();
  const auto event = stream.next();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->top[0].token, best);
  EXPECT_LT(event->logprob, event->top[0].logprob);
}

// Every phase: queued, in a long prompt, while decoding.
TEST(EngineRequests, CancellationFreesTheSequenceWithinAStep_I1_I2) {
  const auto engine = nano_engine({.max_sequences = 1});
  const Answer alone = answer(engine->submit(request(random_ids(3, 40), 60)).value());

  TokenStream running = engine->submit(request(random_ids(3, 41), 4000)).value();
  TokenStream queued = engine->submit(request(random_ids(4, 40), 10)).value();
  ASSERT_TRUE(running.next().has_value());
  queued.cancel();
  std::optional<TokenEvent> last;
  while (auto event = queued.next()) last = event;
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->finish, FinishReason::kCancelled);
  ASSERT_TRUE(running.next().has_value());  // untouched by the other's end
  running.cancel();
  while (running.next().has_value()) {
  }

  TokenStream prompt = engine->submit(request(random_ids(5, 12000), 10)).value();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const auto begin = std::chrono::steady_clock::now();
  prompt.cancel();
  while (prompt.next().has_value()) {
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));

  EXPECT_EQ(answer(engine->submit(request(random_ids(3, 40), 60)).value()).ids, alone.ids);
}

// Cancelled while its third pass runs: that pass is the last, and all that it and those before it computed is there for the next request.
TEST(EngineRequests, ACancelledPromptKeepsWhatWasComputed_I1) {
  std::promise<TokenStream*> submitted;
  const auto engine = nano_engine({}, [&](int64_t pass) { if (pass == 3) submitted.get_future().get()->cancel(); });
  const auto prompt = random_ids(6, 3000);
  TokenStream stream = engine->submit(request(prompt, 10)).value();
  submitted.set_value(&stream);
  std::optional<TokenEvent> last;
  while (auto event = stream.next()) last = event;
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->finish, FinishReason::kCancelled);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.steps, 3);
  EXPECT_GT(stats.computed_tokens, 0);
  EXPECT_LT(stats.computed_tokens, 3000);

  const Answer again = answer(engine->submit(request(prompt, 10)).value());
  EXPECT_EQ(again.stats.hot_tokens, stats.computed_tokens);
  EXPECT_EQ(again.ids, answer(nano_engine()->submit(request(prompt, 10)).value()).ids);
}

// A consumer that never waits: it reads when it is told.
TEST(EngineRequests, AReplyCanBeReadWithoutWaiting) {
  const auto engine = nano_engine();
  const Answer waited = answer(engine->submit(request(random_ids(6, 50), 30)).value());
  TokenStream stream = engine->submit(request(random_ids(6, 50), 30)).value();
  std::promise<void> ended;
  std::vector<TokenId> ids;
  stream.on_change([&] {
    bool over = false;
    while (const auto event = stream.poll(over)) {
      if (event->token >= 0) ids.push_back(event->token);
    }
    if (over) ended.set_value();
  });
  ASSERT_EQ(ended.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(ids, waited.ids);
  EXPECT_TRUE(stream.status().ok());
  EXPECT_EQ(stream.stats().output_tokens, 30);
}

TEST(EngineRequests, TheCachedPrefixesOfAConversationAreListedAsATree) {
  const auto engine = nano_engine();
  EXPECT_TRUE(engine->cached_prefixes().empty());
  auto prompt = random_ids(70, 200);
  const Answer first = answer(engine->submit(request(prompt, 5)).value());
  prompt.insert(prompt.end(), first.ids.begin(), first.ids.end());
  const auto more = random_ids(71, 100);
  prompt.insert(prompt.end(), more.begin(), more.end());
  answer(engine->submit(request(prompt, 5)).value());

  // Ends of prompt and reply, twice; the last token of a reply is never computed.
  const std::vector<CachedPrefix> listed = engine->cached_prefixes();
  std::vector<int64_t> tokens, parents;
  for (const CachedPrefix& prefix : listed) {
    tokens.push_back(prefix.num_tokens);
    const auto parent = std::find_if(listed.begin(), listed.end(), [&](const CachedPrefix& other) { return other.id == prefix.parent; });
    parents.push_back(parent == listed.end() ? prefix.parent : parent->num_tokens);
    EXPECT_GT(prefix.bytes, 0u);
    EXPECT_FALSE(prefix.pinned);
    EXPECT_GE(prefix.age_s, 0.0);
    EXPECT_EQ(prefix.kind, prefix.num_tokens == 200 || prefix.num_tokens == 305 ? "prompt_end" : "reply_end");
    EXPECT_EQ(prefix.hits, prefix.num_tokens == 204 ? 1 : 0);
  }
  EXPECT_EQ(tokens, (std::vector<int64_t>{200, 204, 305, 309}));
  EXPECT_EQ(parents, (std::vector<int64_t>{-1, 200, 204, 305}));
  // What the counters say of it: every token but the last of each reply was computed once, and is held once.
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.snapshots, 4);
  EXPECT_EQ(stats.snapshots_stored, 4);
  EXPECT_EQ(stats.pinned_snapshots, 0);
  EXPECT_EQ(stats.cached_tokens, 309);
  EXPECT_EQ(stats.rows, 309);
  EXPECT_EQ(stats.hot_tokens, 204);
  EXPECT_EQ(stats.computed_tokens, 301);
  EXPECT_EQ(stats.output_tokens, 10);
  EXPECT_GT(stats.compute_ms, 0.0);
  EXPECT_EQ(stats.evictions, 0);
  EXPECT_EQ(stats.evictions_by_reason, (std::map<std::string, int64_t>{{"sequence", 0}, {"snapshot", 0}, {"taken", 0}, {"cleared", 0}}));
}

TEST(EngineRequests, WhoWaitsIsCounted) {
  Engine* seen_by_pass = nullptr;
  std::promise<void> all_there;
  EngineStats early, late;
  const auto hook = [&, ready = all_there.get_future().share()](int64_t pass) {
    if (pass == 1) ready.wait();
    if (pass == 3) early = seen_by_pass->stats();
    if (pass == 4) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (pass == 5) late = seen_by_pass->stats();
  };
  const auto engine = nano_engine({.max_sequences = 1}, hook);
  seen_by_pass = engine.get();
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 3; ++i) streams.push_back(engine->submit(request(random_ids(i, 40), 10)).value());
  all_there.set_value();
  for (TokenStream& stream : streams) answer(std::move(stream));
  EXPECT_EQ(early.running, 1);
  EXPECT_EQ(early.queued, 2);
  EXPECT_GT(early.longest_wait_ms, 0.0);
  EXPECT_GE(late.longest_wait_ms, early.longest_wait_ms + 20.0);
  const EngineStats idle = engine->stats();
  EXPECT_EQ(idle.running, 0);
  EXPECT_EQ(idle.queued, 0);
  EXPECT_EQ(idle.longest_wait_ms, 0.0);
}

TEST(EngineRequests, StopStringsEndTheReplyBeforeThem) {
  const auto engine = nano_engine();
  const Answer whole = answer(engine->submit(request(random_ids(7, 60), 40)).value());
  ASSERT_GT(whole.text.size(), 12u);
  Request r = request(random_ids(7, 60), 40);
  r.stop = {whole.text.substr(8, 3)};
  const Answer stopped = answer(engine->submit(std::move(r)).value());
  EXPECT_EQ(stopped.text, whole.text.substr(0, whole.text.find(whole.text.substr(8, 3))));
  EXPECT_EQ(stopped.finish, FinishReason::kStop);
}

// After every event it is known which tokens the text shown so far belongs to, whatever is held back and wherever a stop string cuts.
TEST(EngineRequests, TokensAreTiedToTheTextTheyShow) {
  const auto engine = nano_engine();
  const Tokenizer& tokenizer = engine->tokenizer();
  int stopped = 0, held = 0, cut = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Request r = request(random_ids(seed, 40), 40);
    r.sampling = {.temperature = 2.5, .seed = seed};
    if (seed % 2 == 0) r.stop = {"ed", "s\n", "re ", "12"};
    TokenStream stream = engine->submit(std::move(r)).value();
    std::vector<TokenId> ids;
    std::string text;
    int64_t shown = 0;
    while (const auto event = stream.next()) {
      if (event->token >= 0) ids.push_back(event->token);
      text += event->text;
      ASSERT_GE(event->tokens_shown, shown);
      shown = event->tokens_shown;
      ASSERT_LE(shown, static_cast<int64_t>(ids.size()));
      // These tokens spell the text, and one fewer does not.
      const auto spelt_by = [&](int64_t count) { return tokenizer.decode(std::span(ids).first(static_cast<size_t>(count)), SkipSpecial::kYes); };
      ASSERT_TRUE(spelt_by(shown).starts_with(text)) << spelt_by(shown) << " / " << text;
      int64_t fewer = shown;
      while (fewer > 0 && tokenizer.is_special(ids[static_cast<size_t>(fewer) - 1])) --fewer;
      if (fewer > 0 && text.find("\uFFFD") == std::string::npos) {
        ASSERT_LT(spelt_by(fewer - 1).size(), text.size()) << text;
      }
      held += event->token >= 0 && shown < static_cast<int64_t>(ids.size()) ? 1 : 0;
      if (event->finish.has_value()) {
        stopped += event->finish == FinishReason::kStop ? 1 : 0;
        cut += spelt_by(shown) != text ? 1 : 0;
        ASSERT_TRUE(event->finish == FinishReason::kStop || shown == static_cast<int64_t>(ids.size()));
      }
    }
  }
  EXPECT_GT(stopped, 3);  // else the test has shown nothing
  EXPECT_GT(held, 3);
  EXPECT_GT(cut, 0);
}

TEST(EngineRequests, TheTokenThatEndsAReplyShowsNothing) {
  const auto engine = nano_engine();
  Request r = request(random_ids(8, 30), 10);
  r.ignore_eos = false;
  r.forced_ids = {11, 12, 8131};  // <|im_end|>
  TokenStream stream = engine->submit(std::move(r)).value();
  int64_t tokens = 0, shown = 0;
  while (const auto event = stream.next()) {
    tokens += event->token >= 0 ? 1 : 0;
    shown = event->tokens_shown;
  }
  EXPECT_EQ(tokens, 3);
  EXPECT_EQ(shown, 2);
}

// The opener of a call is forced, its name is one of those declared, and what follows is free: in every choice, whatever the sampler is told, and
// also where sequences are set aside and resumed in between.
TEST(EngineRequests, AConstraintBeginsAfterTheForcedTokens) {
  const std::vector<std::string> names = {"get_weather>\n", "get_time>\n", "run>\n"};
  const std::string opener = "<tool_call>\n<function=";
  std::vector<std::vector<std::vector<TokenId>>> replies;
  for (const bool crowded : {false, true}) {
    const auto engine = crowded ? nano_engine({.max_sequences = 1, .preempt_after_ms = 0.0}) : nano_engine();
    Request r = request(random_ids(31, 40), 30);
    r.forced_ids = engine->tokenizer().encode(opener);
    r.constraint = make_choice_constraint(engine->tokenizer(), names);
    r.num_choices = 5;
    r.sampling = {.temperature = 2.0, .presence_penalty = 1.5, .frequency_penalty = 1.0, .repetition_penalty = 1.5, .seed = 9};
    TokenStream stream = engine->submit(r).value();
    TokenStream other = engine->submit(request(random_ids(32, 40), 30)).value();
    auto& choices = replies.emplace_back(5);
    std::vector<std::string> texts(5);
    while (const auto event = stream.next()) {
      if (event->token >= 0) choices[static_cast<size_t>(event->choice)].push_back(event->token);
      texts[static_cast<size_t>(event->choice)] += event->text;
    }
    ASSERT_TRUE(stream.status().ok());
    EXPECT_EQ(engine->stats().preemptions > 0, crowded);
    std::set<std::string> chosen;
    for (const std::string& text : texts) {
      ASSERT_TRUE(text.starts_with(opener)) << text;
      const auto name = std::find_if(names.begin(), names.end(), [&](const std::string& n) { return text.substr(opener.size()).starts_with(n); });
      ASSERT_NE(name, names.end()) << text;
      chosen.insert(*name);
      EXPECT_GT(text.size(), opener.size() + name->size()) << text;  // it went on freely
    }
    EXPECT_GT(chosen.size(), 1u);
  }
  EXPECT_EQ(replies[0], replies[1]);
}

TEST(EngineRequests, ForcedIdsComeFirstAndCount) {
  const auto engine = nano_engine();
  Request r = request(random_ids(8, 30), 6);
  r.forced_ids = {11, 12, 13};
  const Answer forced = answer(engine->submit(std::move(r)).value());
  ASSERT_EQ(forced.ids.size(), 6u);
  EXPECT_EQ(std::vector<TokenId>(forced.ids.begin(), forced.ids.begin() + 3), (std::vector<TokenId>{11, 12, 13}));
  auto longer = random_ids(8, 30);
  longer.insert(longer.end(), {11, 12, 13});
  EXPECT_EQ(answer(engine->submit(request(longer, 3)).value()).ids, std::vector<TokenId>(forced.ids.begin() + 3, forced.ids.end()));
}

// Field cases A1, A2, A7: the next turn of a conversation of any length is hot up to the last prompt.
TEST(EngineRequests, ASecondTurnIsHotUpToTheFirstPrompt_A1_A2_A7) {
  const auto engine = nano_engine();
  for (const size_t length : {1, 50, 63, 64, 65, 500, 552, 979, 5000}) {
    auto prompt = random_ids(static_cast<uint32_t>(1000 + length), length);
    answer(engine->submit(request(prompt, 2)).value());
    const auto more = random_ids(99, 30);
    prompt.insert(prompt.end(), more.begin(), more.end());
    EXPECT_GE(answer(engine->submit(request(prompt, 2)).value()).stats.hot_tokens, static_cast<int64_t>(length)) << length;
  }
}

TEST(EngineRequests, ASharedBeginningIsHotFromTheThirdRequestOn_A8) {
  const auto engine = nano_engine();
  const auto shared = random_ids(20, 1500);
  for (uint32_t i = 0; i < 4; ++i) {
    auto prompt = shared;
    const auto own = random_ids(2000 + i, 700);
    prompt.insert(prompt.end(), own.begin(), own.end());
    const Answer a = answer(engine->submit(request(prompt, 2)).value());
    if (i >= 2) {
      EXPECT_GE(a.stats.hot_tokens, 1500) << i;
    } else if (i == 1) {
      EXPECT_THAT(a.stats.cold_reason, HasSubstr("1500"));
    }
  }
}

TEST(EngineRequests, SamplingIsReproducibleAndGreedyIsGreedy_C1) {
  const auto engine = nano_engine();
  Request sampled = request(random_ids(30, 40), 20);
  sampled.sampling = {.temperature = 1.2, .top_k = 50, .top_p = 0.95, .seed = 77};
  const Answer first = answer(engine->submit(sampled).value());
  EXPECT_EQ(answer(engine->submit(sampled).value()).ids, first.ids);
  sampled.sampling.seed = 78;
  EXPECT_NE(answer(engine->submit(sampled).value()).ids, first.ids);
  const Answer greedy = answer(engine->submit(request(random_ids(30, 40), 20)).value());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(answer(engine->submit(request(random_ids(30, 40), 20)).value()).ids, greedy.ids);
}

TEST(EngineRequests, AFullQueueRefuses) {
  const auto engine = nano_engine({.max_sequences = 1, .max_queue = 2});
  std::vector<TokenStream> streams;
  std::string refused;
  for (uint32_t i = 0; i < 8 && refused.empty(); ++i) {
    auto stream = engine->submit(request(random_ids(40 + i, 3000), 100));
    if (stream.ok()) {
      streams.push_back(std::move(stream).value());
    } else {
      refused = stream.error().message;
    }
  }
  EXPECT_THAT(refused, HasSubstr("the queue takes 2"));
  Request many = request(random_ids(60, 10), 5);
  many.num_choices = 3;
  EXPECT_FALSE(nano_engine({.max_queue = 2})->submit(std::move(many)).ok());
}

}  // namespace
}  // namespace espalier::testing
