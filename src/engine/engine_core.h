// The engine thread's side of the engine: queue, admission, steps, snapshots. One object, one thread; Engine hands requests over.
//
// A step: admit what fits, give every running sequence that only decodes one row, share the prompt budget among the others, run one pass, then take the new token of each sequence whose rows are all computed. A sequence never knows whether its
// rows came from a prompt, a reply or a resumption: it has ids and some of them are committed.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cache/prefix_cache.h"
#include "engine/engine.h"
#include "engine/sequence.h"
#include "engine/step_budget.h"
#include "model/causal_lm.h"
#include "model/forward_batch.h"
#include "sampling/sampler.h"

namespace espalier {

class EngineCore {
 public:
  EngineCore(CausalLm& model, PrefixCache& cache, PromptEncoder& encoder, std::shared_ptr<const Tokenizer> tokenizer, std::vector<TokenId> stop_ids,
             const EngineOptions& options);
  ~EngineCore();

  void submit(std::shared_ptr<RequestContext> context);
  // One round: drops what was cancelled, admits, computes. False: there is nothing to do until something is submitted or cancelled.
  bool step();
  // Ends everything that runs or waits with this error. Holds in every state, also one that an exception left behind.
  void fail_all(const Error& error);

  // Tells the consumers of requests that ended since the last call. Apart from `step`, so that whoever sees the end of a request sees
  // it counted as well.
  void announce_finished();

  const EngineStats& stats() const { return stats_; }

 private:
  // A sequence's part of the pass being built.
  struct Planned {
    Sequence* sequence;
    int32_t num_rows;
    int32_t output = -1;  // logits row, if its rows reach the end of its ids
    struct CapturedState {
      int32_t num_tokens;
      StateSlot slot;
    };
    std::vector<CapturedState> captured;
  };

  struct Over {
    std::shared_ptr<RequestChannel> channel;
    Status status;
    RequestStats stats;
  };

  void drop_cancelled();
  void admit();
  void run_pass();
  bool try_start(Sequence& sequence);
  bool start(Sequence& sequence, Match match);
  bool preempt_for(const Sequence& waiting);
  void unblock(size_t index);
  bool plan_pass();
  void plan_sequence(Sequence& sequence, int32_t num_rows);
  void store_captured(Planned& planned);
  void take_token(Planned& planned, const ConstTensorView& logits);
  void end(Sequence& sequence, FinishReason reason);
  void update_gauges();
  void close_if_done(RequestContext& context);
  void close(RequestContext& context);

  CausalLm& model_;
  PrefixCache& cache_;
  PromptEncoder& encoder_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<TokenId> stop_ids_;
  EngineOptions options_;
  size_t vocab_size_;

  std::vector<std::shared_ptr<RequestContext>> open_;  // requests not over yet, wherever their sequences are
  std::deque<std::unique_ptr<Sequence>> waiting_;    // in order of arrival; preempted ones at the end
  std::vector<std::unique_ptr<Sequence>> running_;   // in order of admission
  std::vector<Over> over_;
  std::vector<Planned> plan_;
  std::vector<Sequence*> prompts_;  // of the pass being planned
  std::vector<SequenceInput::Capture> captures_;
  ForwardBatch batch_;
  StepBudget budget_;
  Sampler sampler_;
  EngineStats stats_;
};

}  // namespace espalier
