#include "server/api_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "server/api_error.h"
#include "server/chat_reply.h"
#include "server/completion_reply.h"
#include "server/completion_request.h"
#include "server/delivery.h"
#include "server/metrics.h"
#include "server/work_queue.h"

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWorkers = 2;                 // parse and render; the engine needs the processor more
constexpr size_t kNamesRemembered = 1000;   // model names and unknown fields that were logged once
constexpr std::string_view kModelPrefix = "/v1/models/";  // and its name: one model instead of the list
constexpr size_t kLoggedBytes = size_t{64} << 10;
constexpr int kClientClosedRequest = 499;   // for logs and metrics only: nobody is there to read a status

std::string random_id(std::string_view prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return format("{}{:016x}{:08x}", prefix, random(), random() & 0xffffffff);
}

int64_t unix_time() { return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string_view format_name(ToolCallFormat format) {
  switch (format) {
    case ToolCallFormat::kXmlFunction: return "xml_function";
    case ToolCallFormat::kJsonFunction: return "json_function";
    case ToolCallFormat::kNone: break;
  }
  return "none";
}

std::string_view thinking_name(Thinking thinking) {
  switch (thinking) {
    case Thinking::kOn: return "on";
    case Thinking::kOff: return "off";
    case Thinking::kTemplate: break;
  }
  return "template";
}

// A request between its arrival and its answer.
struct Call {
  std::shared_ptr<HttpExchange> exchange;
  Clock::time_point received;
  RequestRecord record = {};
  std::shared_ptr<const ServedModel> model = {};  // null on routes that need none

  const HttpRequest& request() const { return exchange->request(); }
};

class ApiServerImpl final : public ApiServer {
 public:
  explicit ApiServerImpl(ApiServerOptions options)
      : options_(std::move(options)), gate_(options_.access), started_(unix_time()), workers_(std::make_unique<WorkQueue>(kWorkers)) {}

  Status listen() {
    HttpCallbacks callbacks;
    callbacks.gate = [this](const HttpRequest& head) { return refuse(head); };
    callbacks.handler = [this](std::shared_ptr<HttpExchange> exchange) { handle(std::move(exchange)); };
    callbacks.error_page = [](int status, std::string_view message) {
      log_info("refused {}: {}", status, message);
      return error_page(status, message);
    };
    ESPALIER_ASSIGN(http_, HttpServer::start(options_.http, std::move(callbacks)));
    return Ok{};
  }

  ~ApiServerImpl() override { stop(std::chrono::milliseconds(0)); }

  uint16_t port() const override { return http_->port(); }
  void set_loading_progress(double fraction) override { progress_ = fraction; }
  void serve(ServedModel model) override {
    if (!options_.served_model_name.empty()) model.name = options_.served_model_name;
    const std::lock_guard lock(mutex_);
    model_ = std::make_shared<const ServedModel>(std::move(model));
  }

  bool stop(std::chrono::milliseconds grace) override {
    if (http_ == nullptr) return true;
    const bool all_answered = http_->stop(grace);
    workers_.reset();  // their jobs may still speak to the sockets' thread
    http_.reset();
    const std::lock_guard lock(mutex_);
    deliveries_.clear();
    model_.reset();
    return all_answered;
  }

 private:
  using Handler = void (ApiServerImpl::*)(Call);
  enum class Place { kSocketThread, kWorker };
  struct Route {
    std::string_view method;
    std::string_view path;
    std::string_view alias;  // the same route, for clients whose base URL has no /v1
    Handler handler;
    Place place;
    bool needs_model;
  };
  static constexpr size_t kNumRoutes = 10;
  static const std::array<Route, kNumRoutes> kRoutes;

  std::shared_ptr<const ServedModel> model() const {
    const std::lock_guard lock(mutex_);
    return model_;
  }

  // Before the body is read.
  std::optional<HttpResponse> refuse(const HttpRequest& head) {
    const std::optional<ApiError> error = gate_.refuse(head);
    if (!error.has_value()) return std::nullopt;
    note({.method = head.method, .route = route_name(head.path), .peer = head.peer, .status = error->status, .error = error->message});
    return to_response(*error);
  }

  static const Route* find_route(std::string_view path) {
    if (path.starts_with(kModelPrefix)) path.remove_suffix(path.size() - kModelPrefix.size() + 1);
    const auto route = std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& r) { return r.path == path || (!r.alias.empty() && r.alias == path); });
    return route == kRoutes.end() ? nullptr : &*route;
  }
  static std::string route_name(std::string_view path) {
    const Route* route = find_route(path);
    return route == nullptr ? "other" : std::string(route->path);
  }

  void handle(std::shared_ptr<HttpExchange> exchange) {
    const HttpRequest& request = exchange->request();
    Call call{.exchange = exchange, .received = Clock::now()};
    call.record = {.method = request.method, .route = route_name(request.path), .peer = request.peer};
    if (request.method == "OPTIONS") {
      answer(std::move(call), gate_.preflight(request));
      return;
    }
    const Route* route = find_route(request.path);
    if (route == nullptr) {
      fail(std::move(call), {.status = 404, .message = format("no such route: {} {}", request.method, request.path.substr(0, 100)), .code = "not_found"});
      return;
    }
    const bool method_fits = request.method == route->method || (request.method == "HEAD" && route->method == "GET");
    if (!method_fits) {
      HttpResponse response = to_response({.status = 405, .message = format("{} takes {} only", route->path, route->method), .code = "method_not_allowed"});
      response.headers.push_back({"Allow", std::string(route->method)});
      answer(std::move(call), std::move(response));
      return;
    }
    call.model = model();
    if (route->needs_model && call.model == nullptr) {
      fail(std::move(call), {.status = 503, .message = format("the model is loading: {:.0f} %", 100.0 * progress_.load()), .type = "server_error", .code = "loading"});
      return;
    }
    if (route->place == Place::kSocketThread) {
      run(route->handler, std::move(call));
      return;
    }
    auto shared = std::make_shared<Call>(std::move(call));
    workers_->add([this, route, shared] { run(route->handler, std::move(*shared)); });
  }

  // Whatever a handler runs into, its client gets an answer and the server goes on.
  void run(Handler handler, Call call) {
    const auto exchange = call.exchange;
    const auto received = call.received;
    const RequestRecord record = call.record;
    const auto failed = [&](std::string_view what) {
      log_error("{} {}: {}", record.method, record.route, what);
      fail({.exchange = exchange, .received = received, .record = record},
           {.status = 500, .message = "the request could not be handled", .type = "server_error", .code = "internal_error"});
    };
    try {
      (this->*handler)(std::move(call));
    } catch (const std::exception& error) {
      failed(error.what());
    } catch (...) {
      failed("unknown exception");
    }
  }

  void answer(Call call, HttpResponse response) {
    for (HttpHeader& header : gate_.cors_headers(call.request())) response.headers.push_back(std::move(header));
    call.record.status = response.status;
    call.record.total_ms = ms_since(call.received);
    note(call.record);
    call.exchange->respond(std::move(response));
  }
  void answer_json(Call call, const Json& body) { answer(std::move(call), HttpResponse{.body = dump_json(body)}); }
  void fail(Call call, const ApiError& error) {
    call.record.error = error.message;
    answer(std::move(call), to_response(error));
  }

  void note(const RequestRecord& record) {
    metrics_.add(record);
    // Probes come every few seconds and say nothing; 503 is a model that loads or a server that stops.
    const bool probe = record.route == "/health" || record.route == "/metrics";
    const LogLevel level = probe ? LogLevel::kDebug : record.status == 500 ? LogLevel::kError : LogLevel::kInfo;
    if (!log_enabled(level)) return;
    const std::string fields = dump_json(log_fields(record));
    log_event(level, log_text(record), std::string_view(fields).substr(1, fields.size() - 2));
  }

  void log_once(std::string_view what, const std::string& name) {
    {
      const std::lock_guard lock(mutex_);
      if (names_logged_.size() >= kNamesRemembered || !names_logged_.insert(std::string(what) + name).second) return;
    }
    log_info("{}: {}", what, dump_json(Json(name.substr(0, 200))));
  }

  Result<Json> body_of(const Call& call) const {
    return parse_json(call.request().body, "the body", {.max_bytes = options_.http.limits.max_body_bytes, .max_depth = options_.limits.max_json_depth});
  }

  // The model a request names, against the one that is served.
  std::optional<ApiError> check_model(const Call& call, const std::string& asked_for) {
    if (asked_for.empty() || asked_for == call.model->name) return std::nullopt;
    if (options_.strict_model) {
      return ApiError{.status = 404,
                      .message = format("model {} is not served here, {} is", dump_json(Json(asked_for.substr(0, 200))), dump_json(Json(call.model->name))),
                      .param = "model",
                      .code = "model_not_found"};
    }
    log_once("requests name another model and are served by " + call.model->name, asked_for);
    return std::nullopt;
  }

  void log_unknown(const std::vector<std::string>& fields) {
    for (const std::string& field : fields) log_once("requests have an unknown field, which is ignored", field);
  }

  bool client_left(Call& call) {
    if (!call.exchange->gone()) return false;
    call.record.status = kClientClosedRequest;
    call.record.client_gone = true;
    call.record.total_ms = ms_since(call.received);
    note(call.record);
    return true;
  }

  void chat_completions(Call call) {
    if (client_left(call)) return;
    const Result<Json> body = body_of(call);
    if (!body.ok()) return fail(std::move(call), error_of_request(body.error()));
    Result<ChatRequest> chat = read_chat_request(*body, options_.limits, call.model->defaults, options_.thinking);
    if (!chat.ok()) return fail(std::move(call), error_of_request(chat.error()));
    if (const auto error = check_model(call, chat->model)) return fail(std::move(call), *error);
    log_unknown(chat->unknown_fields);
    Result<ReplyParserOptions> parser = prepare(*chat, *call.model->chat_template, *call.model->tokenizer);
    if (!parser.ok()) return fail(std::move(call), error_of_request(parser.error()));
    if (chat->tools != nullptr && call.model->chat_template->tool_call_format() == ToolCallFormat::kNone) {
      log_once("tools were given to a model whose template has no tool calls", call.model->name);
    }
    const ReplyForm form{.stream = chat->stream.stream, .include_usage = chat->stream.include_usage, .logprobs = chat->logprobs};
    ChatReplyOptions reply{.head = {.id = random_id("chatcmpl-"), .model = call.model->name, .created = unix_time()},
                           .form = form,
                           .parser = *std::move(parser),
                           .num_choices = chat->request.num_choices,
                           .parallel_tool_calls = chat->parallel_tool_calls};
    call.record.id = reply.head.id;
    log_prompt(call);
    std::vector<Request> requests;
    requests.push_back(std::move(chat->request));
    deliver(std::move(call), std::move(requests), std::make_unique<ChatReply>(std::move(reply), call.model->tokenizer), form);
  }

  void completions(Call call) {
    if (client_left(call)) return;
    const Result<Json> body = body_of(call);
    if (!body.ok()) return fail(std::move(call), error_of_request(body.error()));
    Result<CompletionRequest> completion = read_completion_request(*body, options_.limits, call.model->defaults);
    if (!completion.ok()) return fail(std::move(call), error_of_request(completion.error()));
    if (const auto error = check_model(call, completion->model)) return fail(std::move(call), *error);
    log_unknown(completion->unknown_fields);
    const ReplyForm form{.stream = completion->stream.stream, .include_usage = completion->stream.include_usage, .logprobs = completion->logprobs};
    CompletionReplyOptions reply{.head = {.id = random_id("cmpl-"), .model = call.model->name, .created = unix_time()},
                                 .form = form,
                                 .num_prompts = completion->requests.size(),
                                 .num_choices = completion->requests.front().num_choices};
    call.record.id = reply.head.id;
    log_prompt(call);
    deliver(std::move(call), std::move(completion->requests), std::make_unique<CompletionReply>(std::move(reply), call.model->tokenizer), form);
  }

  void log_prompt(const Call& call) const {
    if (options_.log_prompts) log_info("{} body: {}", call.record.id, call.request().body.substr(0, kLoggedBytes));
  }

  void deliver(Call call, std::vector<Request> requests, std::unique_ptr<Reply> reply, const ReplyForm& form) {
    std::vector<TokenStream> streams;
    const int64_t context_length = call.model->engine->context_length();
    for (Request& request : requests) {
      Result<TokenStream> stream = call.model->engine->submit(std::move(request));
      if (!stream.ok()) return fail(std::move(call), error_of_engine(stream.error(), context_length));  // the streams so far cancel themselves
      streams.push_back(*std::move(stream));
    }
    DeliveryOptions options{.form = form,
                            .context_length = context_length,
                            .received = call.received,
                            .filler = {.bytes = ": ping\n\n", .after = options_.ping_after},
                            .headers = gate_.cors_headers(call.request()),
                            .keep_text = options_.log_prompts};
    const uint64_t number = next_delivery_++;
    const auto on_over = [this, number](const RequestRecord& record) {
      note(record);
      if (options_.log_prompts) log_info("{} reply: {}", record.id, record.text.substr(0, kLoggedBytes));
      const std::lock_guard lock(mutex_);
      deliveries_.erase(number);
    };
    const auto exchange = call.exchange;
    const auto delivery =
        std::make_shared<Delivery>(exchange, std::move(streams), std::move(reply), std::move(options), std::move(call.record), on_over);
    {
      const std::lock_guard lock(mutex_);
      deliveries_.emplace(number, delivery);
    }
    exchange->post([delivery] { delivery->begin(); });
  }

  void models(Call call) {
    const std::string id = call.request().path.starts_with(kModelPrefix) ? call.request().path.substr(kModelPrefix.size()) : "";
    if (!id.empty() && id != call.model->name) {
      return fail(std::move(call), {.status = 404, .message = format("model {} is not served here", dump_json(Json(id.substr(0, 200)))), .param = "model", .code = "model_not_found"});
    }
    const Json entry = {{"id", call.model->name},
                        {"object", "model"},
                        {"created", started_},
                        {"owned_by", "espalier"},
                        {"max_model_len", call.model->engine->context_length()}};
    answer_json(std::move(call), id.empty() ? Json{{"object", "list"}, {"data", Json::array({entry})}} : entry);
  }

  void health(Call call) {
    if (call.model == nullptr) {
      return answer(std::move(call), {.status = 503,
                                      .headers = {{"Retry-After", "1"}},
                                      .body = dump_json({{"status", "loading"}, {"progress", progress_.load()}})});
    }
    if (const Status health = call.model->engine->health(); !health.ok()) {
      return answer(std::move(call), {.status = 503, .body = dump_json({{"status", "failed"}, {"error", health.error().message}})});
    }
    answer_json(std::move(call), Json{{"status", "ok"}});
  }

  void metrics(Call call) {
    std::string text;
    if (call.model == nullptr) {
      text = metrics_.text(http_->stats(), nullptr);
    } else {
      const EngineStats stats = call.model->engine->stats();
      text = metrics_.text(http_->stats(), &stats);
    }
    answer(std::move(call), {.content_type = "text/plain; version=0.0.4", .body = std::move(text)});
  }

  void props(Call call) {
    const ServedModel& model = *call.model;
    const HttpLimits& http = options_.http.limits;
    const RequestLimits& limits = options_.limits;
    Json body = {
        {"model", model.name},
        {"context_length", model.engine->context_length()},
        {"tool_call_parser", format_name(model.chat_template->tool_call_format())},
        {"reasoning_parser", model.chat_template->has_reasoning() ? "think_block" : "none"},
        {"thinking", thinking_name(options_.thinking)},
        {"strict_model", options_.strict_model},
        {"api_key_required", !options_.access.api_keys.empty()},
        {"sampling_defaults",
         {{"temperature", model.defaults.temperature},
          {"top_k", model.defaults.top_k},
          {"top_p", model.defaults.top_p},
          {"min_p", model.defaults.min_p},
          {"repetition_penalty", model.defaults.repetition_penalty}}},
        {"limits",
         {{"max_body_bytes", http.max_body_bytes},
          {"max_header_bytes", http.max_header_bytes},
          {"max_connections", http.max_connections},
          {"max_unsent_bytes", http.max_unsent_bytes},
          {"header_timeout_ms", http.header_timeout.count()},
          {"body_timeout_ms", http.body_timeout.count()},
          {"idle_timeout_ms", http.idle_timeout.count()},
          {"send_timeout_ms", http.send_timeout.count()},
          {"max_choices", limits.max_choices},
          {"max_prompts", limits.max_prompts},
          {"max_stops", limits.max_stops},
          {"max_logit_bias", limits.max_logit_bias},
          {"max_top_logprobs", kMaxTopLogprobs},
          {"max_messages", limits.messages.max_messages},
          {"max_tools", limits.messages.max_tools},
          {"max_json_depth", limits.max_json_depth},
          {"max_template_steps", limits.max_template_steps}}},
    };
    for (const auto& [key, value] : model.facts.items()) body[key] = value;
    answer_json(std::move(call), body);
  }

  void cache(Call call) {
    const std::vector<CachedPrefix> prefixes = call.model->engine->cached_prefixes();
    const EngineStats stats = call.model->engine->stats();
    Json snapshots = Json::array();
    for (const CachedPrefix& prefix : prefixes) {
      snapshots.push_back({{"id", prefix.id},
                           {"parent", prefix.parent < 0 ? Json(nullptr) : Json(prefix.parent)},
                           {"tokens", prefix.num_tokens},
                           {"bytes", prefix.bytes},
                           {"kind", prefix.kind},
                           {"hits", prefix.hits},
                           {"age_s", prefix.age_s},
                           {"pinned", prefix.pinned}});
    }
    answer_json(std::move(call), Json{{"bytes", stats.cache_bytes}, {"budget_bytes", stats.cache_budget}, {"snapshots", std::move(snapshots)}});
  }

  void tokenize(Call call) {
    const Result<Json> body = body_of(call);
    if (!body.ok()) return fail(std::move(call), error_of_request(body.error()));
    const Result<Json> tokens = tokens_of(*body, *call.model->tokenizer);
    if (!tokens.ok()) return fail(std::move(call), error_of_request(tokens.error()));
    answer_json(std::move(call), *tokens);
  }

  Result<Json> tokens_of(const Json& body, const Tokenizer& tokenizer) const {
    ESPALIER_TRY(check_body(body));
    JsonFields fields(body);
    ESPALIER_ASSIGN(const auto content, fields.string("content", options_.http.limits.max_body_bytes));
    if (!content.has_value()) return make_error(ErrorCode::kInvalidArgument, "content: missing");
    ESPALIER_ASSIGN(const auto parse_special, fields.boolean("parse_special"));
    const auto control = parse_special.value_or(true) ? Tokenizer::Control::kMatch : Tokenizer::Control::kIgnore;
    const std::vector<TokenId> ids = tokenizer.encode(*content, control);
    return Json{{"tokens", ids}, {"count", ids.size()}};
  }

  void detokenize(Call call) {
    const Result<Json> body = body_of(call);
    if (!body.ok()) return fail(std::move(call), error_of_request(body.error()));
    if (!body->is_object() || !body->contains("tokens")) return fail(std::move(call), invalid_request("tokens: missing"));
    const Result<std::vector<TokenId>> ids = read_token_ids(body->at("tokens"), "tokens");
    if (!ids.ok()) return fail(std::move(call), error_of_request(ids.error()));
    const std::string text = call.model->tokenizer->decode(*ids);
    answer_json(std::move(call), Json{{"content", text}});
  }

  void apply_template(Call call) {
    const Result<Json> body = body_of(call);
    if (!body.ok()) return fail(std::move(call), error_of_request(body.error()));
    Result<ChatRequest> chat = read_chat_request(*body, options_.limits, call.model->defaults, options_.thinking);
    if (!chat.ok()) return fail(std::move(call), error_of_request(chat.error()));
    const Result<MarkedText> prompt = call.model->chat_template->render(chat->input, chat->render);
    if (!prompt.ok()) return fail(std::move(call), error_of_request(prompt.error()));
    answer_json(std::move(call), Json{{"prompt", prompt->text}});
  }

  const ApiServerOptions options_;
  const AccessGate gate_;
  const int64_t started_;
  Metrics metrics_;
  std::atomic<double> progress_ = 0.0;
  std::atomic<uint64_t> next_delivery_ = 0;

  mutable std::mutex mutex_;
  std::shared_ptr<const ServedModel> model_;
  std::map<uint64_t, std::shared_ptr<Delivery>> deliveries_;
  std::set<std::string> names_logged_;

  std::unique_ptr<WorkQueue> workers_;
  std::unique_ptr<HttpServer> http_;
};

const std::array<ApiServerImpl::Route, ApiServerImpl::kNumRoutes> ApiServerImpl::kRoutes = {{
    {"POST", "/v1/chat/completions", "/chat/completions", &ApiServerImpl::chat_completions, Place::kWorker, true},
    {"POST", "/v1/completions", "/completions", &ApiServerImpl::completions, Place::kWorker, true},
    {"GET", "/v1/models", "/models", &ApiServerImpl::models, Place::kSocketThread, true},
    {"GET", "/v1/cache", "", &ApiServerImpl::cache, Place::kWorker, true},
    {"GET", "/health", "", &ApiServerImpl::health, Place::kSocketThread, false},
    {"GET", "/metrics", "", &ApiServerImpl::metrics, Place::kSocketThread, false},
    {"GET", "/props", "", &ApiServerImpl::props, Place::kSocketThread, true},
    {"POST", "/tokenize", "", &ApiServerImpl::tokenize, Place::kWorker, true},
    {"POST", "/detokenize", "", &ApiServerImpl::detokenize, Place::kWorker, true},
    {"POST", "/apply-template", "", &ApiServerImpl::apply_template, Place::kWorker, true},
}};

}  // namespace

Result<std::unique_ptr<ApiServer>> ApiServer::start(ApiServerOptions options) {
  auto server = std::make_unique<ApiServerImpl>(std::move(options));
  ESPALIER_TRY(server->listen());
  return std::unique_ptr<ApiServer>(std::move(server));
}

}  // namespace espalier
