#include "tests/support/model_harness.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/checkpoint.h"

namespace espalier::testing {

ModelHarness::ModelHarness(const BackendCase& backend, const std::string& checkpoint_directory, const HarnessOptions& options)
    : backend_(backend.make()) {
  const Checkpoint checkpoint = Checkpoint::open(checkpoint_directory).value();
  model_ =
      CausalLm::load(checkpoint, *backend_,
                     {.max_rows = options.max_rows, .max_outputs = options.max_rows, .max_uncommitted_rows = options.max_uncommitted_rows})
          .value();
  kv_layout_ = model_->kv_layout(backend_->default_kv_dtype(), options.page_size);
  const int32_t pages_per_sequence = (options.max_tokens + options.page_size - 1) / options.page_size;
  for (int32_t s = 0; s < options.num_sequences; ++s) {
    std::vector<int32_t>& table = page_tables_.emplace_back();
    for (int32_t i = 0; i < pages_per_sequence; ++i) table.push_back((pages_per_sequence - 1 - i) * options.num_sequences + s);
  }
  kv_memory_ = backend_->reserve(static_cast<size_t>(pages_per_sequence * options.num_sequences) * kv_layout_.page_bytes()).value();
  state_memory_ =
      backend_->reserve(static_cast<size_t>(options.num_sequences + options.num_spare_slots) * model_->state_layout().slot_bytes()).value();
  committed_.assign(static_cast<size_t>(options.num_sequences), 0);
  for (int32_t i = 0; i < options.max_rows; ++i) all_rows_.push_back(i);
}

void ModelHarness::reset() {
  kv_memory_->discard(0, kv_memory_->size_bytes());
  state_memory_->discard(0, state_memory_->size_bytes());
  std::fill(committed_.begin(), committed_.end(), 0);
}

ConstTensorView ModelHarness::feed(int32_t sequence, std::span<const TokenId> tokens, std::span<const SequenceInput::Capture> captures,
                                   HiddenObserver* observer) {
  begin();
  add(sequence, tokens, {}, Keep::kAll, captures);
  return run(observer);
}

ConstTensorView ModelHarness::judge(int32_t sequence, std::span<const TokenId> tokens, std::span<const int32_t> parents,
                                    HiddenObserver* observer) {
  begin();
  add(sequence, tokens, parents, Keep::kNone);
  return run(observer);
}

void ModelHarness::accept(int32_t sequence, std::span<const int32_t> path, int32_t index_in_pass) {
  const CommitInput input{.sequence = index_in_pass, .path = path};
  model_->commit(batch_, {&input, 1}, kv(), state());
  committed_[static_cast<size_t>(sequence)] += static_cast<int32_t>(path.size());
}

void ModelHarness::add(int32_t sequence, std::span<const TokenId> tokens, std::span<const int32_t> parents, Keep keep,
                       std::span<const SequenceInput::Capture> captures) {
  int32_t& committed = committed_[static_cast<size_t>(sequence)];
  batch_.add({.tokens = tokens,
              .parents = parents,
              .base = committed,
              .state_slot = sequence,
              .page_table = pages(sequence),
              .keep = keep,
              .output_rows = std::span(all_rows_).first(tokens.size()),
              .captures = captures});
  if (keep == Keep::kAll) committed += static_cast<int32_t>(tokens.size());
}

ConstTensorView ModelHarness::run(HiddenObserver* observer) { return model_->forward(batch_, kv(), state(), observer); }

std::string ModelHarness::state_bytes(int32_t slot) const {
  return {reinterpret_cast<const char*>(state().slot(slot)), state().layout.slot_bytes()};
}

ModelHarness::Memory ModelHarness::save() const {
  return {{reinterpret_cast<const char*>(kv_memory_->data()), kv_memory_->size_bytes()},
          {reinterpret_cast<const char*>(state_memory_->data()), state_memory_->size_bytes()},
          committed_};
}

void ModelHarness::restore(const Memory& memory) {
  std::memcpy(kv_memory_->data(), memory.kv.data(), memory.kv.size());
  std::memcpy(state_memory_->data(), memory.state.data(), memory.state.size());
  committed_ = memory.committed;
}

}  // namespace espalier::testing
