#include "model/activations.h"

#include <algorithm>
#include <utility>

namespace espalier {

ActivationViews ActivationViews::first_rows(int64_t rows) const {
  ActivationViews views = *this;
  for (TensorView* view :
       {&views.hidden, &views.normed, &views.final, &views.q_gate, &views.k, &views.v, &views.q, &views.attention, &views.u, &views.qkv,
        &views.z, &views.a, &views.b, &views.delta, &views.mixed, &views.gate, &views.up, &views.gated}) {
    *view = view->slice(0, rows);
  }
  return views;
}

void Activations::lay_out(BackendArena& arena, DType act, const ModelConfig& c, int32_t max_rows, int32_t max_outputs) {
  const int64_t rows = max_rows;
  views_.hidden = arena.take(DType::kF32, {rows, c.hidden_size});
  views_.normed = arena.take(act, {rows, c.hidden_size});
  views_.final = arena.take(act, {rows, c.hidden_size});
  outputs_ = arena.take(act, {max_outputs, c.hidden_size});
  logits_ = arena.take(DType::kF32, {max_outputs, c.vocab_rows});

  const size_t shared = arena.used_bytes();
  size_t end = shared;
  const auto next_block = [&] {
    end = std::max(end, arena.used_bytes());
    arena.rewind(shared);
  };

  views_.q_gate = arena.take(DType::kF32, {rows, c.num_heads, 2, c.head_dim});
  views_.k = arena.take(DType::kF32, {rows, c.num_kv_heads, c.head_dim});
  views_.v = arena.take(DType::kF32, {rows, c.num_kv_heads, c.head_dim});
  views_.q = arena.take(act, {rows, c.num_heads, c.head_dim});
  views_.attention = arena.take(act, {rows, c.query_dim()});
  next_block();

  views_.u = arena.take(DType::kF32, {rows, c.conv_dim()});
  views_.qkv = arena.take(DType::kF32, {rows, c.conv_dim()});
  views_.z = arena.take(DType::kF32, {rows, c.linear_num_value_heads, c.linear_value_head_dim});
  views_.a = arena.take(DType::kF32, {rows, c.linear_num_value_heads});
  views_.b = arena.take(DType::kF32, {rows, c.linear_num_value_heads});
  views_.delta = arena.take(DType::kF32, {rows, c.linear_num_value_heads, c.linear_value_head_dim});
  views_.mixed = arena.take(act, {rows, c.linear_num_value_heads, c.linear_value_head_dim});
  next_block();

  views_.gate = arena.take(DType::kF32, {rows, c.intermediate_size});
  views_.up = arena.take(DType::kF32, {rows, c.intermediate_size});
  views_.gated = arena.take(act, {rows, c.intermediate_size});
  next_block();
  size_bytes_ = end;
}

size_t Activations::planned_bytes(DType activation_dtype, const ModelConfig& config, int32_t max_rows, int32_t max_outputs) {
  Activations activations;
  BackendArena counting;
  activations.lay_out(counting, activation_dtype, config, max_rows, max_outputs);
  return activations.size_bytes_;
}

Result<Activations> Activations::allocate(Backend& backend, const ModelConfig& config, int32_t max_rows, int32_t max_outputs) {
  Activations activations;
  activations.size_bytes_ = planned_bytes(backend.activation_dtype(), config, max_rows, max_outputs);
  ESPALIER_ASSIGN(activations.arena_, BackendArena::reserve(backend, activations.size_bytes_));
  activations.lay_out(activations.arena_, backend.activation_dtype(), config, max_rows, max_outputs);
  return activations;
}

TensorView flattened(const TensorView& view) {
  const int64_t rows = view.rows();
  return {view.data, view.dtype, {rows, rows == 0 ? 0 : view.shape.num_elements() / rows}};
}

}  // namespace espalier
