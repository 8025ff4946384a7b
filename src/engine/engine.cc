#include "engine/engine.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
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

  std::vector<std::string> describe_cache() override {
    std::vector<std::string> lines;
    run_on_engine([&] {
      for (const SnapshotInfo& snapshot : cache_->list()) {
        lines.push_back(format("{:>8} tokens  {:>8.1f} MB  {:<13} {:>4} hits  {:>7.1f} s old{}", snapshot.num_tokens,
                               static_cast<double>(snapshot.freed_bytes) / 1e6, snapshot_kind_name(snapshot.kind), snapshot.hits, snapshot.age_s,
                               snapshot.pinned ? "  pinned" : ""));
      }
    });
    return lines;
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
    bool idle = false;
    while (true) {
      std::vector<std::shared_ptr<RequestContext>> submitted;
      std::vector<std::function<void()>> tasks;
      {
        std::unique_lock lock(mutex_);
        const auto something = [&] { return stopping_ || !submitted_.empty() || !tasks_.empty(); };
        if (idle) wake_.wait(lock, something);  // nothing runs or waits: nothing can be cancelled either
        if (stopping_) break;
        submitted.swap(submitted_);
        tasks.swap(tasks_);
        stats_.queued += std::exchange(submitted_choices_, 0);
      }
      for (auto& task : tasks) task();
      for (auto& context : submitted) core_.submit(std::move(context));
      idle = !core_.step();
      publish();
    }
    core_.fail_all({ErrorCode::kCancelled, "the engine is shutting down"});
    publish();
    const std::lock_guard lock(mutex_);
    for (auto& context : submitted_) context->channel->close(Error{ErrorCode::kCancelled, "the engine is shutting down"}, context->stats);
    for (auto& task : tasks_) task();
  }

  void publish() {
    {
      const std::lock_guard lock(mutex_);
      stats_ = core_.stats();
    }
    core_.announce_finished();
  }

  // Runs on the engine thread between two steps and waits for it.
  void run_on_engine(std::function<void()> task) {
    std::promise<void> done;
    {
      const std::lock_guard lock(mutex_);
      ESPALIER_CHECK(!stopping_);
      tasks_.push_back([&] {
        task();
        done.set_value();
      });
    }
    wake_.notify_one();
    done.get_future().wait();
  }

  const EngineOptions options_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<CausalLm> model_;
  const std::unique_ptr<PrefixCache> cache_;
  PromptEncoder encoder_;
  EngineCore core_;  // engine thread only

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::vector<std::shared_ptr<RequestContext>> submitted_;
  int32_t submitted_choices_ = 0;  // of these requests
  std::vector<std::function<void()>> tasks_;
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
                  CausalLm::load(checkpoint, *backend, {.max_rows = options.max_rows, .max_outputs = options.max_sequences, .max_uncommitted_rows = 0}));
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
