#include "model/causal_lm.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "model/layouts.h"

namespace espalier {

Result<std::unique_ptr<CausalLm>> CausalLm::load(const Checkpoint& checkpoint, Backend& backend, const CausalLmOptions& options,
                                                 LoadProgress progress) {
  if (options.max_rows < 1 || options.max_outputs < 1 || options.max_uncommitted_rows < 0 ||
      options.max_uncommitted_rows > options.max_rows) {
    return make_error(
        ErrorCode::kInvalidArgument,
        "pass limits: {} rows, {} outputs and {} uncommitted rows; the first two must be positive, the last at most the first",
        options.max_rows, options.max_outputs, options.max_uncommitted_rows);
  }
  const ModelConfig& config = checkpoint.config();
  ESPALIER_ASSIGN(const ConstTensorView a_matrix, checkpoint.tensor("layers.0.mlp.gate_proj.weight"));
  const bool has_delta_net = config.num_linear_layers() > 0;
  ESPALIER_TRY(backend.check({.weight_dtype = a_matrix.dtype,
                              .head_dim = config.head_dim,
                              .key_head_dim = has_delta_net ? config.linear_key_head_dim : 0,
                              .value_head_dim = has_delta_net ? config.linear_value_head_dim : 0,
                              .conv_kernel = config.conv_kernel,
                              .kv_dtype = backend.default_kv_dtype()}));

  std::unique_ptr<CausalLm> model(new CausalLm(backend));
  model->config_ = config;
  model->options_ = options;
  ESPALIER_TRY(model->load_weights(checkpoint, std::move(progress)));
  ESPALIER_ASSIGN(model->activations_, Activations::allocate(backend, config, options.max_rows, options.max_outputs));
  ESPALIER_ASSIGN(model->uncommitted_, UncommittedInputs::allocate(backend, config, options.max_uncommitted_rows));
  model->accepted_.reserve(options.max_uncommitted_rows);
  return model;
}

Status CausalLm::load_weights(const Checkpoint& checkpoint, LoadProgress progress) {
  ESPALIER_ASSIGN(auto loader, WeightLoader::create(checkpoint, *backend_, std::move(progress)));
  ESPALIER_ASSIGN(embedding_, loader.table("embed_tokens.weight"));
  int32_t num_attention = 0;
  int32_t num_delta_net = 0;
  for (int32_t i = 0; i < config_.num_layers; ++i) {
    const LayerKind kind = config_.layer_kinds[static_cast<size_t>(i)];
    const int32_t index_of_kind = kind == LayerKind::kFullAttention ? num_attention++ : num_delta_net++;
    ESPALIER_ASSIGN(auto layer, DecoderLayer::load(loader, config_, format("layers.{}.", i), kind, index_of_kind));
    layers_.push_back(std::move(layer));
  }
  ESPALIER_ASSIGN(final_norm_, loader.vector("norm.weight"));
  ESPALIER_ASSIGN(head_, loader.matrix(config_.tie_word_embeddings ? "embed_tokens.weight" : "lm_head.weight"));
  bytes_per_token_ = loader.matrix_bytes();
  if (config_.has_mtp) {
    ESPALIER_ASSIGN(auto mtp, MtpHead::load(loader, config_));
    mtp_.emplace(std::move(mtp));
  }
  weight_bytes_ = loader.matrix_bytes();
  weight_arena_ = loader.release_arena();
  weight_bytes_ += weight_arena_.used_bytes();
  return Ok{};
}

KvLayout CausalLm::kv_layout(DType kv_dtype, int32_t page_size) const { return espalier::kv_layout(config_, kv_dtype, page_size); }

StateLayout CausalLm::state_layout() const { return espalier::state_layout(config_, backend_->activation_dtype()); }

ForwardContext CausalLm::context(const BatchView& batch, const KvView& kv, const StateView& state) {
  return {.ops = backend_->ops(),
          .batch = batch,
          .kv = kv,
          .state = state,
          .act = activations_.rows(batch.num_rows),
          .uncommitted = uncommitted_};
}

ConstTensorView CausalLm::forward(ForwardBatch& batch, const KvView& kv, const StateView& state, HiddenObserver* observer) {
  ESPALIER_CHECK(batch.num_rows() >= 1 && batch.num_rows() <= options_.max_rows);
  ESPALIER_CHECK(batch.num_outputs() <= options_.max_outputs);
  const BatchView& view = batch.view();
  uncommitted_.begin_pass(view);
  ForwardContext c = context(view, kv, state);
  const auto show = [&](int32_t layer, const TensorView& rows) {
    if (observer == nullptr) return;
    backend_->synchronize();
    observer->on_hidden(layer, rows);
  };

  c.ops.embed({.batch = &view, .table = embedding_, .y = c.act.hidden});
  show(-1, c.act.hidden);
  for (int32_t i = 0; i < config_.num_layers; ++i) {
    layers_[static_cast<size_t>(i)].forward(c);
    show(i, c.act.hidden);
  }
  c.ops.rms_norm({.x = c.act.hidden, .weight = final_norm_, .eps = static_cast<float>(config_.rms_norm_eps), .y = c.act.final});
  show(config_.num_layers, c.act.final);

  for (int32_t i = 0; i < view.num_captures; ++i) keep_boundary_row(view.capture_row[i], state, view.capture_slot[i]);
  for (int32_t s = 0; s < view.num_sequences; ++s) {
    const SequenceView& sequence = view.sequences[s];
    if (sequence.keep == Keep::kAll) keep_boundary_row(sequence.row_begin + sequence.num_rows - 1, state, sequence.state_slot);
  }

  const TensorView logits = activations_.logits(batch.num_outputs());
  if (batch.num_outputs() > 0) {
    const TensorView outputs = activations_.outputs(batch.num_outputs());
    c.ops.gather_rows({.x = c.act.final, .rows = batch.output_rows().data(), .num_rows = batch.num_outputs(), .y = outputs});
    c.ops.linear({.x = outputs, .w = head_.get(), .y = logits});
  }
  backend_->synchronize();
  return logits;
}

void CausalLm::keep_boundary_row(int32_t row, const StateView& state, int32_t slot) {
  const TensorView final = activations_.rows(row + 1).final.slice(row, 1);
  backend_->ops().copy({.from = final.as<std::byte>(), .to = state.hidden(slot), .bytes = final.size_bytes()});
}

void CausalLm::commit(ForwardBatch& batch, std::span<const CommitInput> accepted, const KvView& kv, const StateView& state) {
  accepted_.build(batch.view(), accepted, uncommitted_);
  const BatchView& kept = accepted_.view();
  if (kept.num_rows == 0) return;
  ForwardContext c = context(kept, kv, state);
  for (const DecoderLayer& layer : layers_) {
    if (const GatedDeltaNet* net = layer.delta_net()) net->commit(c, accepted_.places());
  }
  for (int32_t s = 0; s < kept.num_sequences; ++s) {
    const SequenceView& sequence = kept.sequences[s];
    const auto begin = static_cast<size_t>(sequence.row_begin);
    const auto count = static_cast<size_t>(sequence.num_rows);
    const auto from = accepted_.from_slots().subspan(begin, count);
    const auto to = accepted_.to_slots().subspan(begin, count);
    if (!std::equal(from.begin(), from.end(), to.begin())) {
      c.ops.kv_compact({.kv = kv,
                        .page_table = kept.page_table + sequence.page_begin,
                        .from = from.data(),
                        .to = to.data(),
                        .count = sequence.num_rows});
    }
    keep_boundary_row(accepted_.pass_rows()[begin + count - 1], state, sequence.state_slot);
  }
  backend_->synchronize();
}

}  // namespace espalier
