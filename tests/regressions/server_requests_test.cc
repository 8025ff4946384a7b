// What people meet at the server: a model still loading, an engine that fails, clients that go, a queue that is full, a stop in the middle.
// The whole server in this process, over real sockets; passes can be slowed down or made to fail at an exact moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "engine/engine.h"
#include "http/http_client.h"
#include "server/api_server.h"
#include "tests/support/hooked_backend.h"

namespace espalier::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const std::string kModel = std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano";

Json json(std::string_view text) { return parse_json(text, "answer").value(); }

// Keeps passes from going on while it is closed.
class Gate {
 public:
  ~Gate() { open(); }
  void close() { closed_ = true; }
  void open() { closed_ = false; }
  void pass() {
    while (closed_) {
      waiting_ = true;
      std::this_thread::sleep_for(1ms);
    }
    waiting_ = false;
  }
  bool waiting() const { return waiting_; }

 private:
  std::atomic<bool> closed_ = false, waiting_ = false;
};

class Server : public ::testing::Test {
 protected:
  Server() { set_log_level(LogLevel::kError); }
  ~Server() override { set_log_level(LogLevel::kInfo); }

  void listen(ApiServerOptions options = {}) {
    options.http.port = 0;
    server_ = ApiServer::start(options).value();
  }

  void serve(PassHook hook = [](int64_t) {}, EngineOptions options = {}) {
    if (server_ == nullptr) listen();
    if (options.context_length == 0) options.context_length = 4096;
    options.cache_bytes = size_t{64} << 20;
    const auto tokenizer = Tokenizer::load(kModel).value();
    engine_ = Engine::open(Checkpoint::open(kModel).value(), tokenizer, hook_passes(make_cpu_backend({.threads = 2, .isa = {}}).value(), std::move(hook)),
                           options)
                  .value();
    server_->serve({.name = "nano", .tokenizer = tokenizer, .chat_template = ChatTemplate::load(kModel).value(), .engine = engine_, .defaults = {}});
  }

  std::unique_ptr<HttpClient> client() const { return HttpClient::create("http://127.0.0.1:" + std::to_string(server_->port())).value(); }

  struct Answer {
    int status = 0;
    std::string body;
    std::string retry_after;
  };
  Answer send(std::string method, std::string path, const Json& body = nullptr, const std::function<bool()>& go_on = {}) const {
    HttpRequest request{.method = std::move(method), .path = std::move(path), .query = "", .headers = {}, .body = body.is_null() ? "" : dump_json(body), .peer = ""};
    Answer answer;
    const Result<HttpResponse> response = client()->send(request, [&](std::string_view bytes) {
      answer.body += bytes;
      return !go_on || go_on();
    });
    if (!response.ok()) {
      answer.body += response.error().message;
      return answer;
    }
    answer.status = response->status;
    answer.body += response->body;
    if (const std::string* seconds = response->header("Retry-After")) answer.retry_after = *seconds;
    return answer;
  }
  Answer chat(Json body, const std::function<bool()>& go_on = {}) const {
    if (!body.contains("messages")) body["messages"] = {{{"role", "user"}, {"content", "Count to a thousand."}}};
    return send("POST", "/v1/chat/completions", body, go_on);
  }

  template <typename Condition>
  static bool within(std::chrono::milliseconds limit, Condition&& condition) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  bool idle() const { return engine_->stats().running == 0 && engine_->stats().queued == 0; }

  std::unique_ptr<ApiServer> server_;
  std::shared_ptr<Engine> engine_;
  Gate gate_;  // last: opens before the engine's thread is joined
};

TEST_F(Server, SaysHowFarLoadingIs) {
  listen();
  server_->set_loading_progress(0.25);
  const Answer health = send("GET", "/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(json(health.body), (Json{{"status", "loading"}, {"progress", 0.25}}));
  const Answer early = chat({});
  EXPECT_EQ(early.status, 503);
  EXPECT_EQ(json(early.body)["error"]["code"], "loading");
  EXPECT_NE(early.retry_after, "");
  serve();
  EXPECT_EQ(send("GET", "/health").status, 200);
}

TEST_F(Server, AFailedEngineEndsStreamsWithTheReasonAndSaysSo) {
  std::atomic<bool> fail = false;
  std::atomic<int> failures = 0;
  EngineOptions options;
  options.on_failure = [&](const Error&) { ++failures; };
  serve([&](int64_t) { if (fail) throw std::runtime_error("the pass broke"); }, options);
  const Answer stream = chat({{"stream", true}, {"ignore_eos", true}, {"max_tokens", 500}}, [&] { return fail = true; });
  EXPECT_EQ(stream.status, 200) << "its head was out already";
  EXPECT_THAT(stream.body, HasSubstr("data: {\"error\":{\"message\":"));
  EXPECT_THAT(stream.body, HasSubstr("the pass broke"));
  EXPECT_THAT(stream.body, EndsWith("data: [DONE]\n\n"));
  EXPECT_TRUE(within(2s, [&] { return failures == 1; }));
  EXPECT_EQ(chat({}).status, 500);
  const Answer health = send("GET", "/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(json(health.body)["status"], "failed");
}

TEST_F(Server, StreamedAndWholeAnswersAreEqual) {
  serve();
  Json body = {{"seed", 3}, {"temperature", 1.0}, {"max_tokens", 60}, {"ignore_eos", true}};
  const std::string whole = json(chat(body).body)["choices"][0]["message"]["content"];
  body["stream"] = true;
  std::string streamed;
  std::string rest = chat(body).body;
  for (size_t end = rest.find("\n\n"); end != std::string::npos; end = rest.find("\n\n")) {
    const std::string frame = rest.substr(6, end - 6);
    rest.erase(0, end + 2);
    if (frame == "[DONE]") break;
    const Json document = json(frame);
    streamed += document["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(streamed, whole);
  EXPECT_NE(whole, "");
}

// I1: a client that goes while its reply is computed.
TEST_F(Server, AClientThatGoesWhileDecodingFreesItsSequenceAndLeavesItsPrefixHot) {
  serve([](int64_t) { std::this_thread::sleep_for(2ms); });
  chat({{"stream", true}, {"ignore_eos", true}}, [] { return false; });
  EXPECT_TRUE(within(1s, [&] { return idle(); }));
  const Answer again = chat({{"max_tokens", 1}});
  EXPECT_GT(json(again.body)["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

// I1, I2: one that goes while it waits touches nobody else.
TEST_F(Server, AClientThatGoesWhileQueuedLeavesTheOthersAlone) {
  EngineOptions options;
  options.max_sequences = 1;
  serve([&](int64_t) { gate_.pass(); }, options);
  const Json body = {{"ignore_eos", true}, {"max_tokens", 40}, {"temperature", 0}};
  const std::string undisturbed = json(chat(body).body)["choices"][0]["message"]["content"];
  gate_.close();
  auto running = std::async(std::launch::async, [&] { return chat(body); });
  ASSERT_TRUE(within(5s, [&] { return gate_.waiting(); }));
  std::atomic<bool> leave = false;
  HttpClientOptions impatient;
  impatient.interrupted = &leave;
  auto queued = std::async(std::launch::async, [&] {
    const auto leaver = HttpClient::create("http://127.0.0.1:" + std::to_string(server_->port()), impatient).value();
    return leaver->send({.method = "POST", .path = "/v1/chat/completions", .query = "", .headers = {}, .body = dump_json({{"messages", {{{"role", "user"}, {"content", "b"}}}}}), .peer = ""}).ok();
  });
  std::this_thread::sleep_for(100ms);
  leave = true;
  EXPECT_FALSE(queued.get());
  gate_.open();
  EXPECT_EQ(json(running.get().body)["choices"][0]["message"]["content"], undisturbed);
  EXPECT_TRUE(within(2s, [&] { return idle(); }));
}

TEST_F(Server, AFullQueueAnswers429WithATimeToComeBack) {
  gate_.close();
  EngineOptions options;
  options.max_sequences = 1;
  options.max_queue = 1;
  serve([&](int64_t) { gate_.pass(); }, options);
  std::vector<std::future<Answer>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(std::async(std::launch::async, [&] { return chat({{"max_tokens", 2}}); }));
  std::this_thread::sleep_for(300ms);
  const Answer refused = chat({{"max_tokens", 2}});
  gate_.open();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(json(refused.body)["error"]["code"], "queue_full");
  EXPECT_NE(refused.retry_after, "");
  int answered = 0;
  for (auto& answer : waiting) answered += answer.get().status == 200 ? 1 : 0;
  EXPECT_GE(answered, 1);
}

// H2: the shape that agents recognise, so that they compact and come back.
TEST_F(Server, APromptBeyondTheContextIsRefusedWithBothNumbers) {
  serve();
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "word ";
  for (const bool stream : {false, true}) {
    const Answer answer = chat({{"messages", {{{"role", "user"}, {"content", text}}}}, {"stream", stream}});
    EXPECT_EQ(answer.status, 400);
    const Json error = json(answer.body)["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded");
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("maximum context length is 4096 tokens"));
    EXPECT_THAT(error["message"].get<std::string>(), ::testing::ContainsRegex("the prompt has [0-9]+ tokens"));
  }
}

TEST_F(Server, StoppingCutsWhatDoesNotEndInTime) {
  serve([](int64_t) { std::this_thread::sleep_for(20ms); });
  auto running = std::async(std::launch::async, [&] { return chat({{"ignore_eos", true}, {"stream", true}}); });
  ASSERT_TRUE(within(5s, [&] { return engine_->stats().running == 1; }));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(server_->stop(200ms));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
  running.get();
  EXPECT_TRUE(within(2s, [&] { return idle(); }));
}

TEST_F(Server, StoppingLetsShortAnswersFinish) {
  serve([](int64_t) { std::this_thread::sleep_for(5ms); });
  auto running = std::async(std::launch::async, [&] { return chat({{"max_tokens", 10}, {"ignore_eos", true}}); });
  ASSERT_TRUE(within(5s, [&] { return engine_->stats().running == 1; }));
  EXPECT_TRUE(server_->stop(5s));
  EXPECT_EQ(running.get().status, 200);
}

// L7: whatever is routed asks for the key.
TEST_F(Server, EveryRouteButHealthAsksForTheKey) {
  ApiServerOptions options;
  options.access.api_keys = {"secret"};
  listen(options);
  serve();
  for (const char* path : {"/v1/models", "/v1/models/nano", "/v1/cache", "/metrics", "/props", "/models", "/", "/nothing"}) EXPECT_EQ(send("GET", path).status, 401) << path;
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize", "/apply-template", "/chat/completions", "/completions"}) {
    EXPECT_EQ(send("POST", path, Json::object()).status, 401) << path;
  }
  EXPECT_EQ(send("GET", "/health").status, 200);
}

// F1: shapes that make other servers' templates raise.
TEST_F(Server, SystemAndDeveloperMessagesMayStandAnywhere) {
  serve();
  const Json system = {{"role", "system"}, {"content", "s"}};
  const Json developer = {{"role", "developer"}, {"content", "d"}};
  const Json user = {{"role", "user"}, {"content", "u"}};
  const Json assistant = {{"role", "assistant"}, {"content", "a"}};
  for (const Json& messages : {Json::array({system, system, user}), Json::array({user, assistant, system, user}), Json::array({developer, user}),
                               Json::array({system, developer, user, developer})}) {
    EXPECT_EQ(chat({{"messages", messages}, {"max_tokens", 2}}).status, 200) << messages;
  }
}

// D14, H4: what was chosen and what is enforced can be read.
TEST_F(Server, PropsSayWhichParsersAndLimitsAreInForce) {
  EngineOptions options;
  options.context_length = 256;
  serve([](int64_t) {}, options);
  const Json props = json(send("GET", "/props").body);
  EXPECT_EQ(props["tool_call_parser"], "xml_function");
  EXPECT_EQ(props["reasoning_parser"], "think_block");
  EXPECT_EQ(props["thinking"], "off");
  EXPECT_EQ(props["context_length"], engine_->context_length());
  const int64_t room = props["context_length"].get<int64_t>();
  const auto prompt_of = [](int64_t tokens) { return Json{{"prompt", Json(std::vector<TokenId>(static_cast<size_t>(tokens), 100))}, {"max_tokens", 1}}; };
  EXPECT_EQ(send("POST", "/v1/completions", prompt_of(room - 1)).status, 200) << "H1: the longest prompt that leaves room for a token";
  EXPECT_EQ(send("POST", "/v1/completions", prompt_of(room)).status, 400);
  EXPECT_EQ(send("POST", "/v1/completions", prompt_of(2 * room)).status, 400);
}

// F8, D20: tools work without any flag, and no cap is applied in silence because of them.
TEST_F(Server, ToolsNeedNoFlagAndCapNothing) {
  serve();
  const Json tools = {{{"type", "function"}, {"function", {{"name", "bash"}, {"parameters", {{"type", "object"}}}}}}};
#ifdef ESPALIER_SANITIZED
  constexpr int kTokens = 50;
#else
  constexpr int kTokens = 300;
#endif
  const Answer answer = chat({{"tools", tools}, {"tool_choice", "auto"}, {"max_tokens", kTokens}, {"ignore_eos", true}, {"temperature", 0}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(json(answer.body)["usage"]["completion_tokens"], kTokens);
}

// F4, F5: what assistants leave behind in histories.
TEST_F(Server, AssistantMessagesMayBeNearlyEmpty) {
  serve();
  const Json user = {{"role", "user"}, {"content", "u"}};
  const Json call = {{{"id", "call_1"}, {"type", "function"}, {"function", {{"name", "bash"}, {"arguments", "{}"}}}}};
  for (const bool with_call : {false, true}) {
    for (const char* content : {"\"\"", "null", "[]", "missing"}) {
      Json assistant = {{"role", "assistant"}};
      if (std::string_view(content) != "missing") assistant["content"] = json(content);
      if (with_call) assistant["tool_calls"] = call;
      EXPECT_EQ(chat({{"messages", Json::array({user, assistant, user})}, {"max_tokens", 1}}).status, 200) << content << with_call;
    }
  }
  const Json reasoning_only = {{"role", "assistant"}, {"reasoning_content", "hm"}};
  EXPECT_EQ(chat({{"messages", Json::array({user, reasoning_only, user})}, {"max_tokens", 1}}).status, 200);
}

// E5: reasoning that is sent back is rendered as the template wants it, and grows the prompt by nothing else.
TEST_F(Server, ReplayedReasoningIsRenderedOnce) {
  serve();
  Json messages = Json::array({{{"role", "user"}, {"content", "go"}}});
  size_t last = 0;
  std::vector<size_t> growth;
  for (int turn = 0; turn < 20; ++turn) {
    messages.push_back({{"role", "assistant"}, {"reasoning_content", "unmistakable"}, {"content", "ok"}});
    messages.push_back({{"role", "user"}, {"content", "on"}});
    const std::string prompt = json(send("POST", "/apply-template", {{"messages", messages}}).body)["prompt"];
    if (turn > 0) growth.push_back(prompt.size() - last);
    last = prompt.size();
    size_t times = 0;
    for (size_t at = prompt.find("unmistakable"); at != std::string::npos; at = prompt.find("unmistakable", at + 1)) ++times;
    EXPECT_LE(times, messages.size() / 2);
  }
  EXPECT_THAT(growth, ::testing::Each(growth.front()));
}

}  // namespace
}  // namespace espalier::testing
