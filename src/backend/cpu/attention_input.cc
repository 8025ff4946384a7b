#include "ops/attention_input.h"

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/kv_tile.h"

namespace espalier::cpu {

void CpuOps::attention_input(const AttentionInputArgs& args) {
  const ScopedFloatMode mode;
  const BatchView& batch = *args.batch;
  const KvLayout& layout = args.kv.layout;
  const int64_t head_dim = layout.head_dim, num_heads = args.q.shape[1], num_kv_heads = layout.num_kv_heads;
  rotary_.prepare(args.rotary);
  const int64_t half = rotary_.half();
  for (Scratch& scratch : per_thread_) scratch.get<float>(2 * half + 2 * head_dim);

  for_ranges(batch.num_rows, 4, [&](int64_t begin, int64_t end, int thread) {
    auto* cos = per_thread_[static_cast<size_t>(thread)].get<float>(2 * half + 2 * head_dim);
    float *sin = cos + half, *normed = sin + half;
    auto* rounded = reinterpret_cast<uint16_t*>(normed + head_dim);
    NormRotateArgs head{.x = nullptr,
                        .weight = args.q_norm,
                        .eps = args.eps,
                        .n = head_dim,
                        .cos = cos,
                        .sin = sin,
                        .half = half,
                        .scratch = normed,
                        .y = nullptr};
    for (int64_t r = begin; r < end; ++r) {
      rotary_.angles(batch, static_cast<int32_t>(r), cos, sin);
      head.weight = args.q_norm;
      for (int64_t h = 0; h < num_heads; ++h) {
        head.x = args.q_gate.as<float>() + (r * num_heads + h) * 2 * head_dim;
        head.y = args.q.as<uint16_t>() + (r * num_heads + h) * head_dim;
        table_.norm_rotate(head);
      }
      head.weight = args.k_norm;
      head.y = rounded;
      const int32_t slot = batch.kv_slot[r];
      const int32_t* page_table = batch.page_table + batch.sequences[batch.row_sequence[r]].page_begin;
      for (int64_t h = 0; h < num_kv_heads; ++h) {
        const KvTile tile = kv_tile(args.kv, args.layer, page_table, slot, static_cast<int32_t>(h));
        head.x = args.k.as<float>() + (r * num_kv_heads + h) * head_dim;
        table_.norm_rotate(head);
        store_key(tile, head_dim, slot % kTile, rounded);
        table_.round_to_bf16(args.v.as<float>() + (r * num_kv_heads + h) * head_dim, head_dim, rounded);
        store_value(tile, head_dim, slot % kTile, rounded);
      }
    }
  });
}

}  // namespace espalier::cpu
