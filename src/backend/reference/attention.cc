#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/reference/reference_kv.h"
#include "backend/reference/reference_ops.h"
#include "backend/reference/row_path.h"
#include "backend/reference/scalar_math.h"
#include "tensor/codec.h"

namespace espalier {
namespace {

// Slots of the positions 0 .. index[row] that the row sees, in position order.
std::vector<int32_t> visible_slots(const BatchView& batch, int32_t row) {
  std::vector<int32_t> slots;
  for (int32_t position = 0; position < batch.sequences[batch.row_sequence[row]].base; ++position) slots.push_back(position);
  for (const int32_t ancestor : row_path(batch, row)) slots.push_back(batch.kv_slot[ancestor]);
  return slots;
}

}  // namespace

void ReferenceOps::attention(const AttentionArgs& args) {
  const BatchView& batch = *args.batch;
  const KvLayout& layout = args.kv.layout;
  const int64_t head_dim = layout.head_dim;
  const int64_t num_heads = args.q.shape[1];
  for (int32_t r = 0; r < batch.num_rows; ++r) {
    const std::vector<int32_t> slots = visible_slots(batch, r);
    const int32_t* page_table = batch.page_table + batch.sequences[batch.row_sequence[r]].page_begin;
    for (int64_t h = 0; h < num_heads; ++h) {
      const auto kv_head = static_cast<int32_t>(h / (num_heads / layout.num_kv_heads));
      const float* q = args.q.as<float>() + (r * num_heads + h) * head_dim;
      std::vector<double> weights;
      for (const int32_t slot : slots) {
        const std::byte* key = reference_kv_row(args.kv, args.layer, page_table, slot, KvPart::kKey, kv_head);
        double score = 0.0;
        for (int64_t i = 0; i < head_dim; ++i) score += static_cast<double>(q[i]) * load_as_f32(key, layout.dtype, static_cast<size_t>(i));
        weights.push_back(args.scale * score);
      }
      const double largest = *std::max_element(weights.begin(), weights.end());
      double total = 0.0;
      for (double& weight : weights) total += weight = std::exp(weight - largest);
      std::vector<double> out(static_cast<size_t>(head_dim), 0.0);
      for (size_t j = 0; j < slots.size(); ++j) {
        const std::byte* value = reference_kv_row(args.kv, args.layer, page_table, slots[j], KvPart::kValue, kv_head);
        for (size_t i = 0; i < out.size(); ++i) out[i] += weights[j] / total * load_as_f32(value, layout.dtype, i);
      }
      const float* gate = args.q_gate.as<float>() + ((r * num_heads + h) * 2 + 1) * head_dim;
      float* y = args.y.as<float>() + (r * num_heads + h) * head_dim;
      for (size_t i = 0; i < out.size(); ++i) y[i] = static_cast<float>(out[i] * sigmoid(gate[i]));
    }
  }
}

}  // namespace espalier
