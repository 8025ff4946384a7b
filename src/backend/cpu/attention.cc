#include "ops/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/kv_tile.h"

namespace espalier::cpu {
namespace {

constexpr int32_t kTilesPerSpan = kAttentionSpan / kAttentionTile;
constexpr int64_t kMaxOperandRows = 64;  // query rows x heads of one block: enough to be bound by arithmetic, small enough for L2

// Running softmax of the operand rows of a block.
struct SoftmaxState {
  float* max;
  float* sum;
  float* out;  // [rows, head_dim]

  static int64_t floats(int64_t rows, int64_t head_dim) { return rows * (head_dim + 2); }
  SoftmaxState(float* memory, int64_t rows) : max(memory), sum(memory + rows), out(memory + 2 * rows) {}

  void clear(int64_t rows, int64_t head_dim) const {
    std::fill_n(max, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, rows, 0.0f);
    std::fill_n(out, rows * head_dim, 0.0f);
  }
};

// One block of query rows against one KV head. Operand row i * group + g is head g of the group of the block's row i.
class BlockAttention {
 public:
  struct Shape {
    int64_t rows;  // of the largest block
    int64_t group;
    int64_t head_dim;
    int64_t operand_bytes;
  };

  // What a thread needs besides softmax states.
  static int64_t scratch_bytes(const Shape& s) {
    const int64_t m = s.rows * s.group;
    return m * s.head_dim * s.operand_bytes + m * kTile * (s.operand_bytes + 4) + m * 4 + 2 * kTile * s.head_dim * 2 + 4 * 64;
  }

  BlockAttention(const KernelTable& table, const AttentionArgs& args, const AttentionPlan& plan, const AttentionPlan::Block& block,
                 int32_t kv_head, const Shape& shape, std::byte* scratch)
      : table_(table),
        args_(args),
        batch_(*args.batch),
        plan_(plan),
        block_(block),
        sequence_(batch_.sequences[block.sequence]),
        kv_head_(kv_head),
        shape_(shape),
        rows_((block.end - block.begin) * shape.group) {
    const int64_t m = shape.rows * shape.group;
    const auto take = [&](int64_t bytes) {
      std::byte* piece = scratch;
      scratch += (bytes + 63) / 64 * 64;
      return piece;
    };
    query_ = take(m * shape.head_dim * shape.operand_bytes);
    scores_ = reinterpret_cast<float*>(take(m * kTile * 4));
    p_ = take(m * kTile * shape.operand_bytes);
    visible_ = reinterpret_cast<int32_t*>(take(m * 4));
    gathered_.keys = reinterpret_cast<uint16_t*>(take(kTile * shape.head_dim * 2));
    gathered_.values = reinterpret_cast<uint16_t*>(take(kTile * shape.head_dim * 2));
  }

  void load_queries() {
    const int64_t row_elements = args_.q.shape[1] * shape_.head_dim;
    for (int32_t i = block_.begin; i < block_.end; ++i) {
      const auto* q = args_.q.as<uint16_t>() + entry(i).row * row_elements + kv_head_ * shape_.group * shape_.head_dim;
      table_.pack_rows(q, shape_.head_dim, shape_.group, shape_.head_dim, shape_.head_dim,
                       query_ + operand_row(i) * shape_.head_dim * shape_.operand_bytes);
    }
  }

  // Folds the tiles of one span into `state`, which is empty before.
  void attend_span(int32_t span, const SoftmaxState& state) {
    state.clear(rows_, shape_.head_dim);
    const int32_t last_tile = std::min((span + 1) * kTilesPerSpan - 1, block_.last_position / kAttentionTile);
    for (int32_t tile = span * kTilesPerSpan; tile <= last_tile; ++tile) {
      const uint16_t* next_keys = tile < last_tile ? page_tile(tile + 1).keys : nullptr;
      if ((tile + 1) * kAttentionTile <= sequence_.base) {
        attend_tile(tile, page_tile(tile), next_keys, block_.begin, block_.end, state);
        continue;
      }
      for (int32_t begin = block_.begin; begin < block_.end;) {
        int32_t end = begin + 1;
        while (end < block_.end && entry(end).path == entry(begin).path) ++end;
        if (tile * kAttentionTile <= position(end - 1)) {
          const AttentionPlan::Path& path = plan_.paths()[static_cast<size_t>(entry(begin).path)];
          attend_tile(tile, path.in_place ? page_tile(tile) : gather(tile, path.leaf), next_keys, begin, end, state);
        }
        begin = end;
      }
    }
  }

  void merge(const SoftmaxState& total, const SoftmaxState& span) const {
    table_.merge_span({.rows = rows_,
                       .head_dim = shape_.head_dim,
                       .max = total.max,
                       .sum = total.sum,
                       .out = total.out,
                       .span_max = span.max,
                       .span_sum = span.sum,
                       .span_out = span.out});
  }

  void finish(const SoftmaxState& state) const {
    const int64_t num_heads = args_.q.shape[1], d = shape_.head_dim;
    for (int32_t i = block_.begin; i < block_.end; ++i) {
      for (int64_t g = 0; g < shape_.group; ++g) {
        const int64_t head = entry(i).row * num_heads + kv_head_ * shape_.group + g, m = operand_row(i) + g;
        table_.attention_output(state.out + m * d, state.sum[m], args_.q_gate.as<float>() + (2 * head + 1) * d, d,
                                args_.y.as<uint16_t>() + head * d);
      }
    }
  }

 private:
  const AttentionPlan::Entry& entry(int32_t i) const { return plan_.entries()[static_cast<size_t>(i)]; }
  int32_t position(int32_t i) const { return batch_.index[entry(i).row]; }
  int64_t operand_row(int32_t i) const { return (i - block_.begin) * shape_.group; }
  const int32_t* page_table() const { return batch_.page_table + sequence_.page_begin; }
  KvTile page_tile(int32_t tile) const { return kv_tile(args_.kv, args_.layer, page_table(), int64_t{tile} * kTile, kv_head_); }

  // The tile as it would be had the path to `leaf` been decoded: committed positions from their page, then the path's.
  KvTile gather(int32_t tile, int32_t leaf) {
    const size_t bytes = static_cast<size_t>(kTile * shape_.head_dim) * sizeof(uint16_t);
    const int32_t begin = tile * kAttentionTile;
    if (begin < sequence_.base) {
      const KvTile page = page_tile(tile);
      std::memcpy(gathered_.keys, page.keys, bytes);
      std::memcpy(gathered_.values, page.values, bytes);
    } else {
      std::memset(gathered_.keys, 0, bytes);
      std::memset(gathered_.values, 0, bytes);
    }
    for (int32_t row = leaf; row >= 0 && batch_.index[row] >= begin; row = batch_.parent[row]) {
      if (batch_.index[row] >= begin + kAttentionTile) continue;
      const int32_t slot = batch_.kv_slot[row];
      copy_position(kv_tile(args_.kv, args_.layer, page_table(), slot, kv_head_), slot % kTile, gathered_, batch_.index[row] - begin,
                    shape_.head_dim);
    }
    return gathered_;
  }

  // Entries [begin, end) against one tile of keys that is the same for all of them.
  void attend_tile(int32_t tile, const KvTile& keys_values, const uint16_t* next_keys, int32_t begin, int32_t end,
                   const SoftmaxState& state) {
    const int32_t first_key = tile * kAttentionTile;
    while (begin < end && position(begin) < first_key) ++begin;  // ascending within a path; committed tiles are seen by all
    const int64_t first = operand_row(begin), rows = operand_row(end) - first, d = shape_.head_dim;
    if (rows == 0) return;
    for (int32_t i = begin; i < end; ++i)
      std::fill_n(visible_ + operand_row(i), shape_.group, std::clamp(position(i) + 1 - first_key, 0, kAttentionTile));
    float* scores = scores_ + first * kTile;
    std::byte* p = p_ + first * kTile * shape_.operand_bytes;
    table_.gemm({.a = query_ + first * d * shape_.operand_bytes,
                 .a_stride = d,
                 .rows = rows,
                 .b = keys_values.keys,
                 .panel_stride = kPanelRows * d,
                 .n = kTile,
                 .k = d,
                 .c = scores,
                 .c_stride = kTile,
                 .store = GemmStore::kAssign,
                 .next = keys_values.values});
    table_.softmax_tile({.scores = scores,
                         .visible = visible_ + first,
                         .rows = rows,
                         .scale = args_.scale,
                         .max = state.max + first,
                         .sum = state.sum + first,
                         .out = state.out + first * d,
                         .head_dim = d,
                         .p = p});
    table_.gemm({.a = p,
                 .a_stride = kTile,
                 .rows = rows,
                 .b = keys_values.values,
                 .panel_stride = kPanelRows * kTile,
                 .n = d,
                 .k = kTile,
                 .c = state.out + first * d,
                 .c_stride = d,
                 .store = GemmStore::kAdd,
                 .next = next_keys});
  }

  const KernelTable& table_;
  const AttentionArgs& args_;
  const BatchView& batch_;
  const AttentionPlan& plan_;
  const AttentionPlan::Block& block_;
  const SequenceView& sequence_;
  const int32_t kv_head_;
  const Shape shape_;
  const int64_t rows_;
  std::byte* query_;
  float* scores_;
  std::byte* p_;
  int32_t* visible_;
  KvTile gathered_;
};

int32_t num_spans(const AttentionPlan::Block& block) { return block.last_position / kAttentionSpan + 1; }

}  // namespace

void CpuOps::attention(const AttentionArgs& args) {
  const ScopedFloatMode mode;
  const int32_t kv_heads = args.kv.layout.num_kv_heads;
  const int64_t head_dim = args.kv.layout.head_dim, group = args.q.shape[1] / kv_heads;
  const auto max_rows = static_cast<int32_t>(std::max<int64_t>(1, kMaxOperandRows / group));
  attention_plan_.build(*args.batch, max_rows);
  const auto& blocks = attention_plan_.blocks();
  const auto num_blocks = static_cast<int64_t>(blocks.size());
  int32_t block_rows = 0, spans = 0;
  for (const AttentionPlan::Block& block : blocks) {
    block_rows = std::max(block_rows, block.end - block.begin);
    spans = std::max(spans, num_spans(block));
  }
  const BlockAttention::Shape shape{block_rows, group, head_dim, static_cast<int64_t>(table_.operand_bytes)};
  const int64_t state_floats = SoftmaxState::floats(block_rows * group, head_dim);
  const int64_t scratch_bytes = (BlockAttention::scratch_bytes(shape) + 63) / 64 * 64;
  const int64_t thread_bytes = scratch_bytes + 2 * state_floats * static_cast<int64_t>(sizeof(float));
  for (Scratch& scratch : per_thread_) scratch.get<std::byte>(thread_bytes);
  const auto block_attention = [&](int64_t block_head, int thread) {
    return BlockAttention(table_, args, attention_plan_, blocks[static_cast<size_t>(block_head / kv_heads)],
                          static_cast<int32_t>(block_head % kv_heads), shape,
                          per_thread_[static_cast<size_t>(thread)].get<std::byte>(thread_bytes));
  };
  const auto state_memory = [&](int thread) {
    return reinterpret_cast<float*>(per_thread_[static_cast<size_t>(thread)].get<std::byte>(thread_bytes) + scratch_bytes);
  };

  // Enough blocks to keep every thread busy: each walks its spans in order. Otherwise spans run side by side and are merged after,
  // in the same order with the same function.
  const bool split_spans = spans > 1 && num_blocks * kv_heads < 4 * pool_.num_threads();
  if (!split_spans) {
    pool_.parallel_for(num_blocks * kv_heads, [&](int64_t block_head, int thread) {
      BlockAttention attention = block_attention(block_head, thread);
      const int64_t rows = block_rows * group;
      const SoftmaxState total(state_memory(thread), rows), span_state(state_memory(thread) + state_floats, rows);
      attention.load_queries();
      attention.attend_span(0, total);
      for (int32_t span = 1; span < num_spans(blocks[static_cast<size_t>(block_head / kv_heads)]); ++span) {
        attention.attend_span(span, span_state);
        attention.merge(total, span_state);
      }
      attention.finish(total);
    });
    return;
  }
  auto* states = shared_[0].get<float>(num_blocks * kv_heads * spans * state_floats);
  const auto state_of = [&](int64_t block_head, int32_t span) {
    return SoftmaxState(states + (block_head * spans + span) * state_floats, block_rows * group);
  };
  pool_.parallel_for(num_blocks * kv_heads * spans, [&](int64_t chunk, int thread) {
    const int64_t block_head = chunk / spans;
    const auto span = static_cast<int32_t>(chunk % spans);
    if (span >= num_spans(blocks[static_cast<size_t>(block_head / kv_heads)])) return;
    BlockAttention attention = block_attention(block_head, thread);
    attention.load_queries();
    attention.attend_span(span, state_of(block_head, span));
  });
  pool_.parallel_for(num_blocks * kv_heads, [&](int64_t block_head, int thread) {
    const BlockAttention attention = block_attention(block_head, thread);
    for (int32_t span = 1; span < num_spans(blocks[static_cast<size_t>(block_head / kv_heads)]); ++span) {
      attention.merge(state_of(block_head, 0), state_of(block_head, span));
    }
    attention.finish(state_of(block_head, 0));
  });
}

}  // namespace espalier::cpu
