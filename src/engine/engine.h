// The engine: takes requests from any thread, runs them on one thread of its own that owns all mutable inference state, and streams
// tokens back. Everything public here may be called from every thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "engine/request.h"
#include "tokenizer/tokenizer.h"

namespace espalier {

struct EngineOptions {
  int64_t context_length = 0;       // 0: the model's; may exceed it, with one warning
  int32_t max_sequences = 4;        // decoded in one batch
  size_t cache_bytes = 0;           // hard limit of pages and states; 0: from free memory
  int32_t max_queue = 256;          // replies waiting (`n` counts); more are refused
  int32_t page_size = 64;
  int32_t max_rows = 512;           // rows of one pass
  double max_step_ms = 300.0;       // a step is sized to take at most this long
  double preempt_after_ms = 2000.0; // a request queued longer preempts the longest-running sequence
  DType kv_dtype = DType::kBf16;    // ignored by a backend that has only one
  bool use_default_kv_dtype = true;
  // Called from within `open` with the fraction of the weights' bytes prepared so far, 0 first and 1 last. False: `open` ends with kCancelled.
  std::function<bool(double fraction)> on_progress = {};
  // Called once, from the engine thread, when the engine has failed (see `Engine::health`) and everybody knows. Must not throw.
  std::function<void(const Error&)> on_failure = {};
};

// A prefix that can be resumed without computing it.
struct CachedPrefix {
  int64_t id = -1;          // never given twice by one engine
  int64_t parent = -1;      // the longest cached prefix of this one; -1: none
  int64_t num_tokens = 0;
  size_t bytes = 0;         // what dropping it would free: its state and the pages it shares with nobody
  std::string kind;         // why it was kept: "prompt_end", "unstable_tail", "reply_end", "system_block", "divergence", "preempted"
  int64_t hits = 0;         // requests resumed from it
  double age_s = 0.0;
  bool pinned = false;      // a waiting request needs it: it cannot be dropped
};

// Counts since the engine was opened, and gauges as they were after its last step.
struct EngineStats {
  int64_t requests_submitted = 0;
  int64_t requests_finished = 0;  // in whatever way they ended
  int64_t preemptions = 0;        // replies set aside so that others get a turn
  int32_t running = 0;            // gauge: replies being computed
  int32_t queued = 0;             // gauge: replies waiting, those set aside included
  double longest_wait_ms = 0.0;   // gauge: of the replies waiting, since they were submitted or set aside

  int64_t prompt_tokens = 0;
  int64_t hot_tokens = 0;       // prompt tokens taken from the cache
  int64_t computed_tokens = 0;  // prompt tokens computed, each counted once; hot + computed = prompt when every prompt was finished
  int64_t output_tokens = 0;

  int64_t steps = 0;        // passes through the model
  int64_t rows = 0;         // tokens computed by them: of prompts, of replies, and again after an eviction
  double compute_ms = 0.0;  // time they took

  size_t cache_bytes = 0;         // gauge: held; never above the budget
  size_t cache_budget = 0;
  int64_t snapshots = 0;          // gauge: prefixes that can be resumed
  int64_t pinned_snapshots = 0;   // gauge: of these, kept from eviction by a request that waits for them
  int64_t cached_tokens = 0;      // gauge: tokens that these prefixes stand for, what they share counted once
  int64_t snapshots_stored = 0;
  int64_t snapshots_refused = 0;  // not kept: all the room belongs to running replies
  int64_t evictions = 0;
  // The same by what the room was for: "sequence" (a reply being computed), "snapshot" (a new one), "taken" (resumed in place by its only
  // user, as a copy did not fit), "cleared" (asked for). All of them are there from the beginning.
  std::map<std::string, int64_t> evictions_by_reason = {};
};

class Engine {
 public:
  // The checkpoint's weights are prepared here. Errors name what does not fit or does not exist; kCancelled: `on_progress` asked for it.
  static Result<std::unique_ptr<Engine>> open(const Checkpoint& checkpoint, std::shared_ptr<const Tokenizer> tokenizer,
                                              std::unique_ptr<Backend> backend, const EngineOptions& options);
  virtual ~Engine() = default;  // cancels what runs and joins the engine thread

  // Validates and queues. Errors: kInvalidArgument (names the field), kContextLength (both numbers), kResourceExhausted (queue full), and
  // that of `health`.
  virtual Result<TokenStream> submit(Request request) = 0;

  virtual EngineStats stats() const = 0;
  // Tokens of prompt and reply together: what is enforced, which a small cache budget may have lowered.
  virtual int64_t context_length() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  // Parents before children. Waits for the step under way (about `max_step_ms` at most). Empty once the engine has failed.
  virtual std::vector<CachedPrefix> cached_prefixes() = 0;
  // Ok, or kInternal when an exception on the engine thread has ended it: whatever ran or waited then ended with this error, and so does
  // every later request. There is no way back: the memory of that thread's state is not trusted again.
  virtual Status health() const = 0;
};

}  // namespace espalier
