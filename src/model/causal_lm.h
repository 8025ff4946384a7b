// The hybrid language model over any backend: embedding, decoder layers, final norm, head. Owns prepared weights and one set of
// activations, allocated once; a pass allocates nothing. Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "model/forward_batch.h"
#include "ops/kv_layout.h"
#include "ops/state_layout.h"

namespace espalier {

struct CausalLmOptions {
  int32_t max_rows = 512;          // rows of one pass
  int32_t max_outputs = 64;        // logits rows of one pass
  int32_t max_uncommitted_rows = 64;  // rows of Keep::kNone sequences in one pass: their inputs are kept for the commit
};

// Sees the residual stream as it grows: layer -1 is the embedding, L-1 the last decoder layer, L the post-final-norm row.
class HiddenObserver {
 public:
  virtual ~HiddenObserver() = default;
  virtual void on_hidden(int32_t layer, const ConstTensorView& rows) = 0;
};

// The path of one sequence's tree that is kept after a Keep::kNone pass.
struct CommitInput {
  int32_t sequence = 0;                  // index in the pass
  std::span<const int32_t> path;         // indices into the sequence's tokens, root first, each the child of the one before
};

class CausalLm {
 public:
  // Errors name the tensor or the need that the backend cannot meet.
  static Result<std::unique_ptr<CausalLm>> load(const Checkpoint& checkpoint, Backend& backend, const CausalLmOptions& options);
  virtual ~CausalLm() = default;

  virtual const ModelConfig& config() const = 0;
  virtual KvLayout kv_layout(DType kv_dtype, int32_t page_size) const = 0;
  virtual StateLayout state_layout() const = 0;
  virtual size_t weight_bytes() const = 0;      // prepared weights and tables held
  virtual size_t activation_bytes() const = 0;  // scratch held
  // Bytes read from memory per decoded token besides KV and state: for the bandwidth share of benchmarks.
  virtual size_t bytes_per_token() const = 0;

  // Runs one pass. Logits [num_outputs, vocab_rows] F32 in the order of the batch's output rows, raw (padding rows of the vocabulary
  // not masked), valid until the next pass. Keys and values of every row are written to its slot; states as BatchView says; a
  // Keep::kAll sequence's (and capture's) boundary hidden row is the post-final-norm row of its last (captured) row.
  virtual ConstTensorView forward(ForwardBatch& batch, const KvView& kv, const StateView& state, HiddenObserver* observer = nullptr) = 0;

  // After a pass with Keep::kNone sequences: packs the accepted path's keys and replays its recurrent updates, so that the
  // sequence is, bit for bit, as if the path had been decoded token by token. `batch` is that pass's batch, unchanged.
  virtual void commit(ForwardBatch& batch, std::span<const CommitInput> accepted, const KvView& kv, const StateView& state) = 0;
};

}  // namespace espalier
