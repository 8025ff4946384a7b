#include "engine/engine.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "cache/memory_limits.h"
#include "cache/prefix_cache.h"
#include "engine/engine_core.h"
#include "engine/prompt_encoder.h"
#include "model/causal_lm.h"

namespace espalier {
namespace {

constexpr size_t kKnownTextBytes = size_t{64} << 20;

class EngineImpl final : public Engine {
 public:
  EngineImpl(std::shared_ptr<const Tokenizer> tokenizer, std::unique_ptr<Backend> backend, std::unique_ptr<CausalLm> model,
             std::unique_ptr<PrefixCache> cache, std::vector<TokenId> stop_ids, const EngineOptions& options)
      : options_(options),
        tokenizer_(std::move(tokenizer)),
        backend_(std::move(backend)),
        model_(std::move(model)),
        cache_(std::move(cache)),
        encoder_(tokenizer_, kKnownTextBytes),
        core_(*model_, *cache_, encoder_, tokenizer_, std::move(stop_ids), options),
        stats_(core_.stats()),
        thread_([this] { loop(); }) {}

  ~EngineImpl() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  Result<TokenStream> submit(Request request) override {
    ESPALIER_TRY(health());
    ESPALIER_TRY(validate_request(request));
    auto context = std::make_shared<RequestContext>();
    context->submitted = Clock::now();
    if (request.prompt_ids.empty()) {
      context->prompt = encoder_.encode(request.prompt, request.branch_points, request.reply_ids);
    } else {
      context->prompt.ids = std::move(request.prompt_ids);
    }
    ESPALIER_TRY(check_length(context->prompt.ids));
    context->request = std::move(request);
    context->request.prompt = {};  // the ids stand for it from here on
    auto channel = std::make_shared<RequestChannel>();
    context->channel = channel;
    {
      const std::lock_guard lock(mutex_);
      if (failure_.has_value()) return *failure_;
      if (stats_.queued + submitted_choices_ + context->request.num_choices > options_.max_queue) {
        return make_error(ErrorCode::kResourceExhausted, "{} replies are waiting already and {} more were asked for; the queue takes {}",
                          stats_.queued + submitted_choices_, context->request.num_choices, options_.max_queue);
      }
      submitted_choices_ += context->request.num_choices;
      submitted_.push_back(std::move(context));
    }
    wake_.notify_one();
    return TokenStream(std::move(channel));
  }

  EngineStats stats() const override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  int64_t context_length() const override { return options_.context_length; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }

  std::vector<CachedPrefix> cached_prefixes() override {
    std::vector<SnapshotInfo> snapshots;
    run_on_engine([&] { snapshots = cache_->list(); });
    std::vector<CachedPrefix> prefixes;
    prefixes.reserve(snapshots.size());
    for (const SnapshotInfo& snapshot : snapshots) {
      prefixes.push_back({.id = snapshot.id,
                          .parent = snapshot.parent,
                          .num_tokens = static_cast<int64_t>(snapshot.num_tokens),
                          .bytes = snapshot.freed_bytes,
                          .kind = std::string(snapshot_kind_name(snapshot.kind)),
                          .hits = static_cast<int64_t>(snapshot.hits),
                          .age_s = snapshot.age_s,
                          .pinned = snapshot.pinned});
    }
    return prefixes;
  }

  Status health() const override {
    const std::lock_guard lock(mutex_);
    return failure_.has_value() ? Status(*failure_) : Status(Ok{});
  }

 private:
  Status validate_request(const Request& request) const {
    ESPALIER_TRY(validate(request.sampling, static_cast<int64_t>(tokenizer_->vocab_size())));
    if (request.num_choices < 1 || request.num_choices > kMaxChoices) {
      return make_error(ErrorCode::kInvalidArgument, "n: {} is outside [1, {}]", request.num_choices, kMaxChoices);
    }
    if (request.max_new_tokens == 0 || request.max_new_tokens < -1) {
      return make_error(ErrorCode::kInvalidArgument, "max_tokens: {} is not a positive number", request.max_new_tokens);
    }
    if (request.stop.size() > kMaxStops) {
      return make_error(ErrorCode::kInvalidArgument, "stop: {} strings, at most {} are taken", request.stop.size(), kMaxStops);
    }
    for (const std::string& stop : request.stop) {
      if (stop.empty() || stop.size() > kMaxStopBytes) {
        return make_error(ErrorCode::kInvalidArgument, "stop: a string of {} bytes; 1 to {} are taken", stop.size(), kMaxStopBytes);
      }
    }
    for (const auto* ids : {&request.prompt_ids, &request.forced_ids}) {
      for (const TokenId id : *ids) {
        if (id < 0 || static_cast<size_t>(id) >= tokenizer_->vocab_size()) {
          return make_error(ErrorCode::kInvalidArgument, "token id {} is outside the vocabulary of {}", id, tokenizer_->vocab_size());
        }
      }
    }
    return Ok{};
  }

  Status check_length(const std::vector<TokenId>& ids) const {
    if (ids.empty()) return make_error(ErrorCode::kInvalidArgument, "the prompt is empty");
    const auto prompt = static_cast<int64_t>(ids.size());
    if (prompt >= options_.context_length) {
      return make_error(ErrorCode::kContextLength, "the prompt has {} tokens; the context holds {}, and a reply needs at least one", prompt,
                        options_.context_length);
    }
    return Ok{};  // prompt and reply together stay within the context, and the budget holds that
  }

  void loop() {
    try {
      serve();
    } catch (const std::exception& exception) {
      return fail(exception.what());
    } catch (...) {
      return fail("an exception of unknown type");
    }
    end_all({ErrorCode::kCancelled, "the engine is shutting down"});
  }

  void serve() {
    bool idle = false;
    while (true) {
      std::vector<Task> tasks;
      {
        std::unique_lock lock(mutex_);
        const auto something = [&] { return stopping_ || !submitted_.empty() || !tasks_.empty(); };
        if (idle) wake_.wait(lock, something);  // nothing runs or waits: nothing can be cancelled either
        if (stopping_) return;
        taken_.swap(submitted_);
        tasks.swap(tasks_);
        stats_.queued += std::exchange(submitted_choices_, 0);
      }
      for (const Task& task : tasks) task(Turn::kRun);
      for (const auto& context : taken_) core_.submit(context);
      taken_.clear();
      idle = !core_.step();
      publish();
    }
  }

  void fail(std::string_view what) {
    const Error error{ErrorCode::kInternal, format("the engine has failed and serves nothing more: {}", what)};
    log_error("{}", error.message);
    {
      const std::lock_guard lock(mutex_);
      failure_ = error;
    }
    end_all(error);
    if (options_.on_failure) options_.on_failure(error);
  }

  void end_all(const Error& error) {
    std::vector<Task> tasks;
    std::vector<std::shared_ptr<RequestContext>> submitted;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
      submitted.swap(submitted_);
      submitted_choices_ = 0;
    }
    core_.fail_all(error);
    publish();
    for (const auto* requests : {&taken_, &submitted}) {  // the core may know some of those just taken
      for (const auto& context : *requests) context->channel->close(error, context->stats);
    }
    for (const Task& task : tasks) task(Turn::kSkip);
  }

  void publish() {
    {
      const std::lock_guard lock(mutex_);
      stats_ = core_.stats();
    }
    core_.announce_finished();
  }

  enum class Turn { kRun, kSkip };
  using Task = std::function<void(Turn)>;

  // Runs on the engine thread between two steps and waits for it; not at all once the engine has failed. What it throws comes out here.
  void run_on_engine(const std::function<void()>& work) {
    const auto done = std::make_shared<std::promise<void>>();  // outlives whoever is told last
    {
      const std::lock_guard lock(mutex_);
      ESPALIER_CHECK(!stopping_);
      if (failure_.has_value()) return;
      tasks_.push_back([&work, done](Turn turn) {
        try {
          if (turn == Turn::kRun) work();
          done->set_value();
        } catch (...) {
          done->set_exception(std::current_exception());
        }
      });
    }
    wake_.notify_one();
    done->get_future().get();
  }

  const EngineOptions options_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<CausalLm> model_;
  const std::unique_ptr<PrefixCache> cache_;
  PromptEncoder encoder_;
  EngineCore core_;                                     // engine thread only
  std::vector<std::shared_ptr<RequestContext>> taken_;  // on their way into the core; engine thread only

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::vector<std::shared_ptr<RequestContext>> submitted_;
  int32_t submitted_choices_ = 0;  // of these requests
  std::vector<Task> tasks_;
  std::optional<Error> failure_;
  EngineStats stats_;
  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(const Checkpoint& checkpoint, std::shared_ptr<const Tokenizer> tokenizer,
                                             std::unique_ptr<Backend> backend, const EngineOptions& wanted) {
  EngineOptions options = wanted;
  const ModelConfig& config = checkpoint.config();
  const int64_t trained = config.max_position_embeddings;
  if (options.context_length == 0) options.context_length = trained;
  if (options.context_length < 1 || options.context_length > (int64_t{1} << 30)) {
    return make_error(ErrorCode::kInvalidArgument, "context: {} tokens is outside [1, {}]", options.context_length, int64_t{1} << 30);
  }
  if (options.context_length > trained) {
    log_warn("a context of {} tokens exceeds the {} this model was made for; answers beyond that may be poor", options.context_length, trained);
  }
  if (options.max_sequences < 1 || options.max_sequences > options.max_rows) {
    return make_error(ErrorCode::kInvalidArgument, "max-sequences: {} is outside [1, {}]", options.max_sequences, options.max_rows);
  }
  if (tokenizer->vocab_size() > static_cast<size_t>(config.vocab_rows)) {
    return make_error(ErrorCode::kCorrupt, "the tokenizer has {} ids, the model's embedding only {} rows", tokenizer->vocab_size(), config.vocab_rows);
  }
  if (options.use_default_kv_dtype) options.kv_dtype = backend->default_kv_dtype();
  ESPALIER_ASSIGN(std::unique_ptr<CausalLm> model,
                  CausalLm::load(checkpoint, *backend, {.max_rows = options.max_rows, .max_outputs = options.max_sequences, .max_uncommitted_rows = 0},
                                 options.on_progress));
  options.on_progress = {};  // the engine keeps its options, but nothing of the caller's that has served
  ESPALIER_ASSIGN(const MemoryLimits limits, read_memory_limits());
  if (options.cache_bytes > limits.available_bytes) {
    return make_error(ErrorCode::kResourceExhausted, "cache-bytes: {} were asked for, {} are available ({})", options.cache_bytes,
                      limits.available_bytes, limits.source);
  }
  if (options.cache_bytes == 0) {
    options.cache_bytes = default_cache_budget(limits.available_bytes, 0);
    log_info("cache budget {:.1f} GB of {:.1f} GB available ({}); --cache-bytes sets it", static_cast<double>(options.cache_bytes) / 1e9,
             static_cast<double>(limits.available_bytes) / 1e9, limits.source);
  }
  CacheSpec spec{.kv = model->kv_layout(options.kv_dtype, options.page_size), .state = model->state_layout(), .budget_bytes = options.cache_bytes};
  ESPALIER_ASSIGN(std::unique_ptr<PrefixCache> cache, PrefixCache::create(spec, *backend));
  if (const int64_t fitting = cache->max_tokens_that_fit(); fitting < options.context_length) {
    log_warn("the cache budget of {:.1f} MB holds a sequence of {} tokens: that is the context, not {}", static_cast<double>(options.cache_bytes) / 1e6,
             fitting, options.context_length);
    options.context_length = fitting;
  }
  return std::unique_ptr<Engine>(std::make_unique<EngineImpl>(std::move(tokenizer), std::move(backend), std::move(model), std::move(cache),
                                                              config.stop_ids, options));
}

}  // namespace espalier
