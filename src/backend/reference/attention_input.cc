#include "ops/attention_input.h"

#include <cmath>
#include <vector>

#include "backend/reference/reference_kv.h"
#include "backend/reference/reference_ops.h"
#include "backend/reference/scalar_math.h"
#include "tensor/codec.h"

namespace espalier {
namespace {

void zero_centred_norm(const float* x, const float* weight, float eps, std::vector<double>& y) {
  const double scale = 1.0 / std::sqrt(sum_of_squares(x, static_cast<int64_t>(y.size())) / static_cast<double>(y.size()) + eps);
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] * scale * (1.0 + weight[i]);
}

int32_t position_stream(const RotaryParams& rotary, int32_t frequency) {
  if (frequency % 3 == 1 && frequency < 3 * rotary.mrope_section[1]) return 1;
  if (frequency % 3 == 2 && frequency < 3 * rotary.mrope_section[2]) return 2;
  return 0;
}

void rotate(std::vector<double>& x, const RotaryParams& rotary, const BatchView& batch, int32_t row) {
  const int32_t half = rotary.rotary_dim / 2;
  for (int32_t i = 0; i < half; ++i) {
    const float frequency = 1.0f / static_cast<float>(std::pow(rotary.theta, 2.0 * i / rotary.rotary_dim));
    const auto position = static_cast<float>(batch.rotary_position[position_stream(rotary, i) * batch.num_rows + row]);
    const double angle = position * frequency;  // FP32 product: part of the contract
    const double a = x[static_cast<size_t>(i)];
    const double b = x[static_cast<size_t>(i + half)];
    x[static_cast<size_t>(i)] = a * std::cos(angle) - b * std::sin(angle);
    x[static_cast<size_t>(i + half)] = b * std::cos(angle) + a * std::sin(angle);
  }
}

}  // namespace

void ReferenceOps::attention_input(const AttentionInputArgs& args) {
  const BatchView& batch = *args.batch;
  const KvLayout& layout = args.kv.layout;
  const int64_t head_dim = layout.head_dim;
  const int64_t num_heads = args.q.shape[1];
  std::vector<double> head(static_cast<size_t>(head_dim));
  for (int32_t r = 0; r < batch.num_rows; ++r) {
    for (int64_t h = 0; h < num_heads; ++h) {
      zero_centred_norm(args.q_gate.as<float>() + (r * num_heads + h) * 2 * head_dim, args.q_norm, args.eps, head);
      rotate(head, args.rotary, batch, r);
      float* q = args.q.as<float>() + (r * num_heads + h) * head_dim;
      for (size_t i = 0; i < head.size(); ++i) q[i] = static_cast<float>(head[i]);
    }
    const int32_t* page_table = batch.page_table + batch.sequences[batch.row_sequence[r]].page_begin;
    for (int32_t h = 0; h < layout.num_kv_heads; ++h) {
      zero_centred_norm(args.k.as<float>() + (static_cast<int64_t>(r) * layout.num_kv_heads + h) * head_dim, args.k_norm, args.eps, head);
      rotate(head, args.rotary, batch, r);
      const float* v = args.v.as<float>() + (static_cast<int64_t>(r) * layout.num_kv_heads + h) * head_dim;
      std::byte* key = reference_kv_row(args.kv, args.layer, page_table, batch.kv_slot[r], KvPart::kKey, h);
      std::byte* value = reference_kv_row(args.kv, args.layer, page_table, batch.kv_slot[r], KvPart::kValue, h);
      for (size_t i = 0; i < head.size(); ++i) {
        store_from_f32(key, layout.dtype, i, static_cast<float>(head[i]));
        store_from_f32(value, layout.dtype, i, v[i]);
      }
    }
  }
}

}  // namespace espalier
