#include "engine/engine_core.h"

#include <algorithm>

#include "base/log.h"

namespace espalier {

EngineCore::EngineCore(CausalLm& model, PrefixCache& cache, PromptEncoder& encoder, std::shared_ptr<const Tokenizer> tokenizer, std::vector<TokenId> stop_ids,
                       const EngineOptions& options)
    : model_(model),
      cache_(cache),
      encoder_(encoder),
      tokenizer_(std::move(tokenizer)),
      stop_ids_(std::move(stop_ids)),
      options_(options),
      vocab_size_(std::min(static_cast<size_t>(model.config().vocab_rows), tokenizer_->vocab_size())),
      budget_(options.max_step_ms, options.max_rows) {
  stats_.cache_budget = options.cache_bytes;
  update_gauges();
}

EngineCore::~EngineCore() = default;

void EngineCore::submit(std::shared_ptr<RequestContext> context) {
  open_.push_back(context);
  ++stats_.requests_submitted;
  context->choices_left = context->request.num_choices;
  context->stats.prompt_tokens = static_cast<int64_t>(context->prompt.ids.size());
  context->stats.adopted_tokens = context->prompt.adopted_tokens;
  for (int32_t choice = 0; choice < context->request.num_choices; ++choice) {
    auto sequence = std::make_unique<Sequence>(context, choice, tokenizer_);
    const auto prompt_tokens = static_cast<int64_t>(context->prompt.ids.size());
    const int64_t room = options_.context_length - prompt_tokens;
    const int64_t wanted = context->request.max_new_tokens;
    sequence->max_tokens = prompt_tokens + (wanted < 0 ? room : std::min(room, wanted));
    waiting_.push_back(std::move(sequence));
  }
}

bool EngineCore::step() {
  drop_cancelled();
  admit();
  const bool planned_rows = plan_pass();
  if (planned_rows) run_pass();
  update_gauges();
  return planned_rows;
}

void EngineCore::update_gauges() {
  stats_.running = static_cast<int32_t>(running_.size());
  stats_.queued = static_cast<int32_t>(waiting_.size());
  stats_.longest_wait_ms = 0.0;
  const auto now = Clock::now();
  for (const auto& sequence : waiting_) stats_.longest_wait_ms = std::max(stats_.longest_wait_ms, ms_between(sequence->queued_since, now));

  const CacheStats cache = cache_.stats();
  stats_.cache_bytes = cache.held_bytes;
  stats_.snapshots = static_cast<int64_t>(cache.num_snapshots);
  stats_.pinned_snapshots = static_cast<int64_t>(cache.num_pinned);
  stats_.cached_tokens = static_cast<int64_t>(cache.num_known_tokens);
  stats_.snapshots_stored = static_cast<int64_t>(cache.snapshots_stored);
  stats_.snapshots_refused = static_cast<int64_t>(cache.snapshots_refused);
  stats_.evictions = 0;
  for (size_t i = 0; i < kNumEvictionReasons; ++i) {
    const auto count = static_cast<int64_t>(cache.evictions[i]);
    stats_.evictions_by_reason[std::string(eviction_reason_name(static_cast<EvictionReason>(i)))] = count;
    stats_.evictions += count;
  }
}

void EngineCore::run_pass() {
  const auto begin = Clock::now();
  const ConstTensorView logits = model_.forward(batch_, cache_.kv(), cache_.state());
  for (Planned& planned : plan_) {
    Sequence& sequence = *planned.sequence;
    const auto committed = static_cast<size_t>(sequence.committed());
    ++sequence.steps_run;
    sequence.state->commit(std::span(sequence.ids).subspan(committed, static_cast<size_t>(planned.num_rows)));
    store_captured(planned);
  }
  for (Planned& planned : plan_) {
    if (planned.output >= 0) take_token(planned, logits);
  }
  const double took_ms = ms_between(begin, Clock::now());
  budget_.observe(batch_.num_rows(), took_ms);
  ++stats_.steps;
  stats_.rows += batch_.num_rows();
  stats_.compute_ms += took_ms;
  std::erase_if(running_, [](const auto& sequence) { return !sequence->state.has_value(); });
}

void EngineCore::drop_cancelled() {
  for (auto& sequence : running_) {
    if (sequence->cancelled()) end(*sequence, FinishReason::kCancelled);
  }
  std::erase_if(running_, [](const auto& sequence) { return !sequence->state.has_value(); });
  for (auto& sequence : waiting_) {
    if (!sequence->cancelled()) continue;
    sequence->finish(FinishReason::kCancelled);
    RequestContext& context = *sequence->context;
    --context.choices_left;
    close_if_done(context);
    sequence.reset();
  }
  std::erase(waiting_, nullptr);
}

void EngineCore::admit() {
  for (size_t i = 0; i < waiting_.size();) {
    Sequence& sequence = *waiting_[i];
    if (sequence.choice > 0 && !sequence.context->prompt_done) {  // starts from what the first choice computes
      ++i;
      continue;
    }
    const bool slot_free = running_.size() < static_cast<size_t>(options_.max_sequences);
    if (slot_free && try_start(sequence)) {
      running_.push_back(std::move(waiting_[i]));
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
      continue;
    }
    // Nobody overtakes the head of the queue: what it waits for would never come free.
    if (preempt_for(sequence)) continue;
    if (!running_.empty() || !slot_free) return;
    unblock(i);
  }
}

// Nothing runs, yet this sequence does not fit: only snapshots pinned for sequences that wait can be in its way. They give them up (and
// will be computed again). If that is not enough, a start from nothing is; and if even that does not fit, the request cannot be served.
void EngineCore::unblock(size_t index) {
  bool released = false;
  for (auto& other : waiting_) {
    released |= static_cast<bool>(other->pin) || static_cast<bool>(other->context->fork);
    other->pin.release();
    other->context->fork.release();
  }
  if (released) return;
  const std::shared_ptr<RequestContext> context = waiting_[index]->context;
  const Status fits = cache_.check_fits_now(Match{}, static_cast<int32_t>(waiting_[index]->max_tokens));
  if (fits.ok() && start(*waiting_[index], Match{})) {
    running_.push_back(std::move(waiting_[index]));
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(index));
    return;
  }
  context->failed = fits.ok() ? Error{ErrorCode::kResourceExhausted, "the cache budget has no room for this request"} : fits.error();
  context->choices_left -= static_cast<int32_t>(std::erase_if(waiting_, [&](const auto& sequence) { return sequence->context == context; }));
  close_if_done(*context);
}

bool EngineCore::try_start(Sequence& sequence) {
  if (sequence.ids.empty()) sequence.ids = sequence.context->prompt.ids;
  const bool set_aside = static_cast<bool>(sequence.pin);
  const size_t usable = sequence.ids.size() - 1;  // one token must be computed to have logits
  Match match = set_aside ? cache_.match_of(sequence.pin) : cache_.match(sequence.ids, usable);
  sequence.pin.release();  // the match holds it now, alone: the sequence may take the snapshot over
  if (!cache_.check_fits_now(match, static_cast<int32_t>(sequence.max_tokens)).ok()) {
    if (set_aside) sequence.pin = std::move(match.snapshot);
    return false;
  }
  return start(sequence, std::move(match));
}

bool EngineCore::start(Sequence& sequence, Match match) {
  RequestContext& context = *sequence.context;
  const size_t hot = match.num_hot;
  const bool resumed = sequence.reply_length() > 0;
  std::string reason = match.reason == ColdReason::kNewText ? std::string() : match.explanation();
  Result<SequenceState> opened = cache_.open(std::move(match), static_cast<int32_t>(sequence.max_tokens));
  if (!opened.ok()) return false;
  sequence.state = std::move(opened).value();
  sequence.running_since = Clock::now();
  sequence.steps_run = 0;

  sequence.capture_points.clear();
  const auto want = [&](int64_t position) {
    if (position > static_cast<int64_t>(hot) && position <= static_cast<int64_t>(sequence.ids.size())) sequence.capture_points.push_back(position);
  };
  if (!resumed) {
    for (const int64_t position : context.prompt.branch_points) want(position);
    for (const int32_t position : cache_.wanted_captures(sequence.ids, static_cast<int32_t>(hot))) want(position);
    want(static_cast<int64_t>(sequence.ids.size()));
    if (context.request.num_choices > 1 && sequence.choice == 0) want(static_cast<int64_t>(sequence.ids.size()) - 1);
    std::sort(sequence.capture_points.begin(), sequence.capture_points.end());
    sequence.capture_points.erase(std::unique(sequence.capture_points.begin(), sequence.capture_points.end()), sequence.capture_points.end());
    if (sequence.choice == 0 && !context.started) {
      context.started = true;
      context.prompt_reached = static_cast<int64_t>(hot);
      context.stats.hot_tokens = static_cast<int64_t>(hot);
      context.stats.queue_ms = ms_between(context.submitted, sequence.running_since);
      context.stats.cold_reason = std::move(reason);
      stats_.prompt_tokens += context.stats.prompt_tokens;
      stats_.hot_tokens += context.stats.hot_tokens;
    }
  }
  return true;
}

// A request that has waited too long takes the place of the sequence that has run longest; that one is set aside as a snapshot and
// goes to the end of the queue.
bool EngineCore::preempt_for(const Sequence& waiting) {
  const auto now = Clock::now();
  if (running_.empty() || ms_between(waiting.queued_since, now) < options_.preempt_after_ms) return false;
  const auto longest = std::min_element(running_.begin(), running_.end(),
                                        [](const auto& a, const auto& b) { return a->running_since < b->running_since; });
  if ((*longest)->steps_run == 0) return false;
  if (ms_between((*longest)->running_since, now) < options_.preempt_after_ms) return false;  // give everybody a turn of that length
  std::unique_ptr<Sequence> victim = std::move(*longest);
  running_.erase(longest);
  if (victim->committed() > 0) {
    victim->pin = cache_.store(std::move(*victim->state), SnapshotKind::kPreempted).snapshot;
  }
  victim->state.reset();
  victim->queued_since = now;
  ++victim->context->stats.preemptions;
  ++stats_.preemptions;
  waiting_.push_back(std::move(victim));
  return true;
}

bool EngineCore::plan_pass() {
  batch_.clear();
  plan_.clear();
  captures_.clear();
  int32_t decode_rows = 0;
  for (auto& sequence : running_) decode_rows += sequence->pending() == 1 ? 1 : 0;
  int32_t prompt_rows = budget_.prompt_rows(decode_rows);
  prompts_.clear();
  for (auto& sequence : running_) {
    if (sequence->pending() == 1) {
      plan_sequence(*sequence, 1);
    } else {
      prompts_.push_back(sequence.get());
    }
  }
  // Equal shares, what a short prompt leaves of its share going to the longer ones: a long prompt never holds up a short one.
  std::stable_sort(prompts_.begin(), prompts_.end(), [](const Sequence* a, const Sequence* b) { return a->pending() < b->pending(); });
  for (size_t i = 0; i < prompts_.size() && prompt_rows > 0; ++i) {
    const int32_t share = std::max(1, prompt_rows / static_cast<int32_t>(prompts_.size() - i));
    const auto rows = static_cast<int32_t>(std::min<int64_t>(prompts_[i]->pending(), share));
    prompt_rows -= rows;
    plan_sequence(*prompts_[i], rows);
  }
  return !plan_.empty();
}

void EngineCore::plan_sequence(Sequence& sequence, int32_t num_rows) {
  const int64_t base = sequence.committed();
  cache_.reserve(*sequence.state, static_cast<int32_t>(base) + num_rows);
  Planned planned{.sequence = &sequence, .num_rows = num_rows, .output = -1, .captured = {}};
  captures_.clear();
  auto& points = sequence.capture_points;
  while (!points.empty() && points.front() <= base + num_rows) {
    const auto position = static_cast<int32_t>(points.front());
    points.erase(points.begin());
    Result<StateSlot> slot = cache_.capture_slot();
    if (!slot.ok()) continue;  // no room: the prompt is computed all the same
    captures_.push_back({position - static_cast<int32_t>(base) - 1, slot->index()});
    planned.captured.push_back({position, std::move(slot).value()});
  }
  const bool reaches_end = num_rows == sequence.pending();
  const int32_t last_row = num_rows - 1;
  const SequenceInput input{.tokens = std::span(sequence.ids).subspan(static_cast<size_t>(base), static_cast<size_t>(num_rows)),
                            .parents = {},
                            .base = static_cast<int32_t>(base),
                            .state_slot = sequence.state->state_slot(),
                            .page_table = sequence.state->page_table(),
                            .keep = Keep::kAll,
                            .output_rows = reaches_end ? std::span(&last_row, 1) : std::span<const int32_t>(),
                            .captures = captures_};
  const int32_t first_output = batch_.add(input);
  if (reaches_end) planned.output = first_output;
  // What was set aside, lost and computed again counts once: hot + computed = prompt.
  RequestContext& context = *sequence.context;
  const int64_t reached = std::min(base + num_rows, static_cast<int64_t>(context.prompt.ids.size()));
  if (sequence.choice == 0 && reached > context.prompt_reached) {
    stats_.computed_tokens += reached - context.prompt_reached;
    context.prompt_reached = reached;
  }
  plan_.push_back(std::move(planned));
}

void EngineCore::store_captured(Planned& planned) {
  Sequence& sequence = *planned.sequence;
  RequestContext& context = *sequence.context;
  const auto prompt_tokens = static_cast<int32_t>(context.prompt.ids.size());
  for (auto& captured : planned.captured) {
    const auto& points = context.prompt.branch_points;
    const bool branch = std::find(points.begin(), points.end(), captured.num_tokens) != points.end();
    const SnapshotKind kind = captured.num_tokens == prompt_tokens ? SnapshotKind::kPromptEnd
                              : !branch                            ? SnapshotKind::kDivergence
                              : captured.num_tokens == points.front() && points.size() > 1 ? SnapshotKind::kSystemBlock
                                                                                           : SnapshotKind::kUnstableTail;
    StoreResult stored = cache_.store(*sequence.state, captured.num_tokens, std::move(captured.slot), kind);
    if (context.request.num_choices > 1 && sequence.choice == 0 && captured.num_tokens == prompt_tokens - 1) {
      context.fork = std::move(stored.snapshot);  // the other choices find it when they start
    }
  }
}

void EngineCore::take_token(Planned& planned, const ConstTensorView& logits) {
  Sequence& sequence = *planned.sequence;
  RequestContext& context = *sequence.context;
  context.prompt_done = true;
  const auto position = static_cast<uint64_t>(sequence.reply_length());
  const float* row = logits.as<float>() + static_cast<size_t>(planned.output) * static_cast<size_t>(logits.shape[1]);
  const std::span<const float> addressable(row, vocab_size_);
  const auto& forced = context.request.forced_ids;

  const SamplingParams& params = context.request.sampling;
  const Draw draw{.seed = params.seed, .choice = static_cast<uint32_t>(sequence.choice), .position = position};
  const Sample sample = position < forced.size() ? sampler_.forced(addressable, params, forced[position])
                                                 : sampler_.sample(addressable, params, sequence.counts, sequence.constraint.get(), draw);
  ++stats_.output_tokens;
  if (const auto finished = sequence.accept(sample, stop_ids_)) end(sequence, *finished);
}

void EngineCore::end(Sequence& sequence, FinishReason reason) {
  RequestContext& context = *sequence.context;
  if (reason != FinishReason::kCancelled) encoder_.learn_reply(context.prompt.history, sequence.reply());
  sequence.finish(reason);
  if (sequence.committed() > 0) cache_.store(std::move(*sequence.state), SnapshotKind::kReplyEnd);
  sequence.state.reset();
  --context.choices_left;
  close_if_done(context);
}

void EngineCore::close_if_done(RequestContext& context) {
  if (context.choices_left == 0) close(context);
}

void EngineCore::close(RequestContext& context) {
  context.fork.release();
  context.stats.total_ms = ms_between(context.submitted, Clock::now());
  ++stats_.requests_finished;
  over_.push_back({context.channel, context.failed.has_value() ? Status(*context.failed) : Status(Ok{}), context.stats});
  std::erase_if(open_, [&](const auto& open) { return open.get() == &context; });
}

void EngineCore::announce_finished() {
  for (Over& over : over_) over.channel->close(std::move(over.status), std::move(over.stats));
  over_.clear();
}

void EngineCore::fail_all(const Error& error) {
  while (!open_.empty()) {
    const std::shared_ptr<RequestContext> context = open_.back();
    context->failed = error;
    close(*context);
  }
  running_.clear();
  waiting_.clear();
  stats_.running = 0;
  stats_.queued = 0;
  stats_.longest_wait_ms = 0.0;
}

}  // namespace espalier
