// A model on a backend with pages and state slots laid out by hand: what goldens and laws drive, without engine or cache.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backends_test_support.h"
#include "model/causal_lm.h"

namespace espalier::testing {

struct HarnessOptions {
  int32_t page_size = 64;
  int32_t num_sequences = 2;    // state slots 0 .. num_sequences - 1
  int32_t num_spare_slots = 2;  // state slots after them, for captures
  int32_t max_tokens = 256;     // of one sequence, nodes of a tree included
  int32_t max_rows = 256;       // of one pass; all of them may be outputs
  int32_t max_uncommitted_rows = 64;
};

class ModelHarness {
 public:
  ModelHarness(const BackendCase& backend, const std::string& checkpoint_directory, const HarnessOptions& options);

  CausalLm& model() { return *model_; }
  const ModelConfig& config() const { return model_->config(); }
  KvView kv() const { return {kv_memory_->data(), kv_layout_}; }
  StateView state() const { return {state_memory_->data(), model_->state_layout()}; }
  // The page table of a sequence: its pages lie between those of the others, last first.
  std::span<const int32_t> pages(int32_t sequence) const { return page_tables_[static_cast<size_t>(sequence)]; }
  int32_t committed(int32_t sequence) const { return committed_[static_cast<size_t>(sequence)]; }

  // Every sequence empty, every byte of state and pages zero.
  void reset();
  // A chain to be kept, in one pass; logits [tokens, vocab_rows] of every row, valid until the next pass.
  ConstTensorView feed(int32_t sequence, std::span<const TokenId> tokens, std::span<const SequenceInput::Capture> captures = {},
                       HiddenObserver* observer = nullptr);
  // A tree to be judged; logits of every node.
  ConstTensorView judge(int32_t sequence, std::span<const TokenId> tokens, std::span<const int32_t> parents,
                        HiddenObserver* observer = nullptr);
  // Keeps a path of the sequence's tree in the last pass, which held it as its sequence number `index_in_pass`.
  void accept(int32_t sequence, std::span<const int32_t> path, int32_t index_in_pass = 0);

  // For passes of several sequences: `add` as ForwardBatch with all rows as outputs, then `run`.
  void begin() { batch_.clear(); }
  void add(int32_t sequence, std::span<const TokenId> tokens, std::span<const int32_t> parents, Keep keep,
           std::span<const SequenceInput::Capture> captures = {});
  ConstTensorView run(HiddenObserver* observer = nullptr);

  std::string state_bytes(int32_t slot) const;
  // All that a sequence could leave behind: pages, slots and lengths.
  struct Memory {
    std::string kv, state;
    std::vector<int32_t> committed;
  };
  Memory save() const;
  void restore(const Memory& memory);

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<CausalLm> model_;
  KvLayout kv_layout_;
  std::unique_ptr<BackendMemory> kv_memory_;
  std::unique_ptr<BackendMemory> state_memory_;
  std::vector<std::vector<int32_t>> page_tables_;
  std::vector<int32_t> committed_;
  std::vector<int32_t> all_rows_;
  ForwardBatch batch_;
};

}  // namespace espalier::testing
