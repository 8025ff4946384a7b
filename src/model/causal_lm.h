// The hybrid language model over any backend: embedding, decoder layers, final norm, head. Owns prepared weights and one set of
// activations, allocated once; a pass allocates nothing. Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "model/accepted_rows.h"
#include "model/activations.h"
#include "model/decoder_layer.h"
#include "model/forward_batch.h"
#include "model/mtp_head.h"
#include "model/uncommitted_inputs.h"
#include "model/weight_loader.h"
#include "ops/kv_layout.h"
#include "ops/state_layout.h"

namespace espalier {

struct CausalLmOptions {
  int32_t max_rows = 512;             // rows of one pass
  int32_t max_outputs = 64;           // logits rows of one pass
  int32_t max_uncommitted_rows = 64;  // rows of Keep::kNone sequences in one pass: their inputs are kept for the commit
};

// Sees the residual stream as it grows: layer -1 is the embedding, L-1 the last decoder layer, L the post-final-norm row.
class HiddenObserver {
 public:
  virtual ~HiddenObserver() = default;
  virtual void on_hidden(int32_t layer, const ConstTensorView& rows) = 0;
};

class CausalLm {
 public:
  // The backend must outlive the model; the checkpoint need not. Errors name the tensor or the need that the backend cannot meet.
  static Result<std::unique_ptr<CausalLm>> load(const Checkpoint& checkpoint, Backend& backend, const CausalLmOptions& options,
                                                LoadProgress progress = {});

  const ModelConfig& config() const { return config_; }
  KvLayout kv_layout(DType kv_dtype, int32_t page_size) const;
  StateLayout state_layout() const;
  size_t weight_bytes() const { return weight_bytes_; }                                              // prepared weights and tables held
  size_t activation_bytes() const { return activations_.size_bytes() + uncommitted_.size_bytes(); }  // scratch held
  // Bytes read from memory per decoded token besides KV and state: for the bandwidth share of benchmarks.
  size_t bytes_per_token() const { return bytes_per_token_; }

  // Runs one pass. Logits [num_outputs, vocab_rows] F32 in the order of the batch's output rows, raw (padding rows of the vocabulary
  // not masked), valid until the next pass. Keys and values of every row are written to its slot; states as BatchView says; a
  // Keep::kAll sequence's (and capture's) boundary hidden row is the post-final-norm row of its last (captured) row.
  ConstTensorView forward(ForwardBatch& batch, const KvView& kv, const StateView& state, HiddenObserver* observer = nullptr);

  // After a pass with Keep::kNone sequences: packs the accepted path's keys and replays its recurrent updates, so that the
  // sequence is, bit for bit, as if the path had been decoded token by token. `batch` is that pass's batch, unchanged.
  void commit(ForwardBatch& batch, std::span<const CommitInput> accepted, const KvView& kv, const StateView& state);

 private:
  explicit CausalLm(Backend& backend) : backend_(&backend) {}

  Status load_weights(const Checkpoint& checkpoint, LoadProgress progress);
  ForwardContext context(const BatchView& batch, const KvView& kv, const StateView& state);
  void keep_boundary_row(int32_t row, const StateView& state, int32_t slot);

  Backend* backend_;
  ModelConfig config_;
  CausalLmOptions options_;
  size_t weight_bytes_ = 0;
  size_t bytes_per_token_ = 0;

  BackendArena weight_arena_;
  ConstTensorView embedding_;  // [vocab_rows, hidden_size] as stored
  std::vector<DecoderLayer> layers_;
  const float* final_norm_ = nullptr;     // [hidden_size]
  std::unique_ptr<PreparedWeight> head_;  // [vocab_rows, hidden_size]
  std::optional<MtpHead> mtp_;

  Activations activations_;
  UncommittedInputs uncommitted_;
  AcceptedRows accepted_;
};

}  // namespace espalier
