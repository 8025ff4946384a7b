// A warm turn at 20,000 tokens of history over HTTP: what passes between sending the request and the first frame beyond the engine's own
// computation of the turn's new tokens. Request, body, parsing, rendering, ids, queue, detokeniser, frame and socket are all in it.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "bench/agent_conversation.h"
#include "engine/engine.h"
#include "http/http_client.h"
#include "server/api_server.h"

namespace espalier::bench {
namespace {

constexpr int64_t kHistoryTokens = 20000;
const char* const kModel = "models/espalier-nano";

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

class Session {
 public:
  Session() {
    set_log_level(LogLevel::kWarn);
    const auto tokenizer = Tokenizer::load(kModel).value();
    const Checkpoint checkpoint = Checkpoint::open(kModel).value();
    EngineOptions options;
    options.cache_bytes = size_t{1} << 30;
    std::shared_ptr<Engine> engine = Engine::open(checkpoint, tokenizer, make_cpu_backend({.threads = 0, .isa = {}}).value(), options).value();
    ApiServerOptions server_options;
    server_options.http.port = 0;
    server_ = ApiServer::start(server_options).value();
    server_->serve({.name = "nano", .tokenizer = tokenizer, .chat_template = ChatTemplate::load(kModel).value(), .engine = engine, .defaults = {}});
    client_ = HttpClient::create("http://127.0.0.1:" + std::to_string(server_->port())).value();
    while (last_prompt_tokens_ < kHistoryTokens) turn(24);
    turn(1);
  }

  // Plays the next turn, whose tool result has so many functions; one token is generated. Returns the milliseconds to the first frame that the
  // engine's computation does not account for.
  double turn(int lines) {
    append_turn(messages_, next_++, lines);
    HttpRequest request{.method = "POST", .path = "/v1/chat/completions", .query = "", .headers = {{"Content-Type", "application/json"}}, .body = "", .peer = ""};
    request.body = dump_json({{"model", "nano"}, {"messages", messages_}, {"tools", agent_tools()}, {"temperature", 0.0}, {"max_tokens", 1}, {"stream", true}});
    std::string stream;
    double first_frame_ms = 0.0;
    const auto start = std::chrono::steady_clock::now();
    const HttpResponse answer = client_
                                    ->send(request,
                                           [&](std::string_view bytes) {
                                             if (stream.empty()) first_frame_ms = ms_since(start);
                                             stream += bytes;
                                             return true;
                                           })
                                    .value();
    if (answer.status != 200) std::abort();
    const std::string_view key = "\"espalier\":";
    const size_t at = stream.find(key) + key.size();
    const Json details = parse_json(std::string_view(stream).substr(at, stream.find("}\n", at) - at), "details").value();
    last_prompt_tokens_ = details["prompt_tokens"];
    last_computed_tokens_ = last_prompt_tokens_ - details["cached_tokens"].get<int64_t>();
    return first_frame_ms - (details["timings"]["first_token_ms"].get<double>() - details["timings"]["queue_ms"].get<double>());
  }

  int64_t prompt_tokens() const { return last_prompt_tokens_; }
  int64_t computed_tokens() const { return last_computed_tokens_; }

 private:
  Json messages_ = agent_conversation(1);
  size_t next_ = 1;
  int64_t last_prompt_tokens_ = 0, last_computed_tokens_ = 0;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<HttpClient> client_;
};

void BM_TurnOverHttp(benchmark::State& state) {
  Session session;
  for (auto _ : state) state.SetIterationTime(session.turn(1) / 1000.0);
  state.counters["tokens"] = static_cast<double>(session.prompt_tokens());
  state.counters["new_tokens"] = static_cast<double>(session.computed_tokens());
}
BENCHMARK(BM_TurnOverHttp)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(30)->Repetitions(3);

}  // namespace
}  // namespace espalier::bench
