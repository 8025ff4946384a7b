#include "ops/gated_delta_rule.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/cpu_ops.h"

namespace espalier::cpu {
namespace {

// A state [key_dim, value_dim] is walked in slabs of columns, which do not see one another. A chunk takes narrow slabs, copied to
// where they fill a quarter of L1 without conflicts, through all its tokens; few tokens take wide ones where they lie, for fewer streams.
constexpr int64_t kWideSlab = 4 * kSlab;
constexpr int32_t kFewTokens = 3;

void copy_columns(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, static_cast<size_t>(columns) * sizeof(float));
}

// The nodes of a tree in depth-first order, and their depths (0: child of the committed end).
void depth_first(const BatchView& batch, const SequenceView& sequence, std::vector<int32_t>& links, std::vector<int32_t>& order,
                 std::vector<int32_t>& depth) {
  const int32_t begin = sequence.row_begin, count = sequence.num_rows;
  links.assign(static_cast<size_t>(2 * count + 1), -1);  // first child of the root and of each node, then the next sibling of each node
  int32_t* first_child = links.data() + 1;               // [-1] is the committed end
  int32_t* next_sibling = first_child + count;
  for (int32_t node = count - 1; node >= 0; --node) {
    const int32_t parent = batch.parent[begin + node] < 0 ? -1 : batch.parent[begin + node] - begin;
    next_sibling[node] = first_child[parent];
    first_child[parent] = node;
  }
  for (int32_t node = first_child[-1]; node >= 0;) {
    order.push_back(begin + node);
    depth.push_back(batch.index[begin + node] - sequence.base);
    if (first_child[node] >= 0) {
      node = first_child[node];
      continue;
    }
    while (node >= 0 && next_sibling[node] < 0) node = batch.parent[begin + node] < 0 ? -1 : batch.parent[begin + node] - begin;
    if (node >= 0) node = next_sibling[node];
  }
}

}  // namespace

void CpuOps::gated_delta_rule(const GatedDeltaRuleArgs& args) {
  const ScopedFloatMode mode;
  const BatchView& batch = *args.batch;
  const StateLayout& layout = args.state.layout;
  const int64_t key_dim = layout.key_head_dim, value_dim = layout.value_head_dim;
  const int64_t key_heads = args.num_key_heads, value_heads = layout.num_value_heads;
  const int64_t rows = batch.num_rows, qk_row = key_heads * key_dim, qkv_row = 2 * qk_row + value_heads * value_dim;
  const auto* qkv = args.qkv.as<float>();

  auto* normed = shared_[0].get<float>(rows * 2 * qk_row);      // [rows, q or k, key_heads, key_dim]
  auto* gates = shared_[1].get<float>(rows * 2 * value_heads);  // [rows, decay or beta, value_heads]
  const float query_scale = 1.0f / std::sqrt(static_cast<float>(key_dim));
  for_ranges(rows, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t h = 0; h < 2 * key_heads; ++h) {
        table_.l2_normalize(qkv + r * qkv_row + h * key_dim, key_dim, h < key_heads ? query_scale : 1.0f,
                            normed + r * 2 * qk_row + h * key_dim);
      }
      table_.delta_gates(args.a.as<float>() + r * value_heads, args.b.as<float>() + r * value_heads, args.a_log, args.dt_bias, value_heads,
                         gates + r * 2 * value_heads, gates + (r * 2 + 1) * value_heads);
    }
  });

  int32_t deepest = 1;
  tree_order_.clear();
  tree_depth_.clear();
  for (int32_t s = 0; s < batch.num_sequences; ++s) {
    const SequenceView& sequence = batch.sequences[s];
    if (sequence.keep == Keep::kNone) depth_first(batch, sequence, tree_links_, tree_order_, tree_depth_);
  }
  for (const int32_t depth : tree_depth_) deepest = std::max(deepest, depth + 1);
  const int64_t slab_floats = key_dim * kSlab;
  for (Scratch& scratch : per_thread_) scratch.get<float>(deepest * slab_floats);

  // Token `row` and the tokens - 1 rows after it, for the columns from `column` on.
  const auto run = [&](int32_t row, int64_t tokens, int64_t head, int64_t column, int64_t columns, const float* from, int64_t from_stride,
                       float* to, int64_t to_stride) {
    const float* q = normed + row * 2 * qk_row + head / (value_heads / key_heads) * key_dim;
    table_.delta_run({.from = from,
                      .from_stride = from_stride,
                      .to = to,
                      .to_stride = to_stride,
                      .key_dim = key_dim,
                      .columns = columns,
                      .tokens = tokens,
                      .q = q,
                      .k = q + qk_row,
                      .qk_stride = 2 * qk_row,
                      .v = qkv + row * qkv_row + 2 * qk_row + head * value_dim + column,
                      .v_stride = qkv_row,
                      .decay = gates + row * 2 * value_heads + head,
                      .beta = gates + (row * 2 + 1) * value_heads + head,
                      .gate_stride = 2 * value_heads,
                      .o = args.o.as<float>() + (row * value_heads + head) * value_dim + column,
                      .o_stride = value_heads * value_dim});
  };

  int32_t tree_begin = 0, capture_begin = 0;
  for (int32_t s = 0; s < batch.num_sequences; ++s) {
    const SequenceView& sequence = batch.sequences[s];
    const auto state_of = [&](int32_t slot, int64_t head, int64_t column) {
      return args.state.recurrent(slot, args.layer) + head * key_dim * value_dim + column;
    };
    const int32_t row_end = sequence.row_begin + sequence.num_rows;
    int32_t capture_end = capture_begin;
    while (capture_end < batch.num_captures && batch.capture_row[capture_end] < row_end) ++capture_end;

    if (sequence.keep == Keep::kNone) {
      const int64_t slabs = value_dim / kSlab;
      pool_.parallel_for(value_heads * slabs, [&](int64_t chunk, int thread) {
        const int64_t head = chunk / slabs, column = chunk % slabs * kSlab;
        auto* stack = per_thread_[static_cast<size_t>(thread)].get<float>(deepest * slab_floats);  // the state after each ancestor
        for (int32_t i = tree_begin; i < tree_begin + sequence.num_rows; ++i) {
          const int32_t depth = tree_depth_[static_cast<size_t>(i)];
          const float* from = depth == 0 ? state_of(sequence.state_slot, head, column) : stack + (depth - 1) * slab_floats;
          run(tree_order_[static_cast<size_t>(i)], 1, head, column, kSlab, from, depth == 0 ? value_dim : kSlab,
              stack + depth * slab_floats, kSlab);
        }
      });
      tree_begin += sequence.num_rows;
      continue;
    }

    const bool wide = sequence.num_rows <= kFewTokens && value_dim % kWideSlab == 0;
    const int64_t columns = wide ? kWideSlab : kSlab, slabs = value_dim / columns;
    pool_.parallel_for(value_heads * slabs, [&](int64_t chunk, int thread) {
      const int64_t head = chunk / slabs, column = chunk % slabs * columns;
      float* home = state_of(sequence.state_slot, head, column);
      float* slab = wide ? home : per_thread_[static_cast<size_t>(thread)].get<float>(slab_floats);
      const int64_t stride = wide ? value_dim : kSlab;
      if (!wide) copy_columns(home, value_dim, slab, stride, key_dim, columns);
      int32_t row = sequence.row_begin;
      for (int32_t capture = capture_begin; capture < capture_end; ++capture) {
        const int32_t next = batch.capture_row[capture] + 1;
        if (next > row) run(row, next - row, head, column, columns, slab, stride, slab, stride);
        row = next;
        copy_columns(slab, stride, state_of(batch.capture_slot[capture], head, column), value_dim, key_dim, columns);
      }
      if (row < row_end) run(row, row_end - row, head, column, columns, slab, stride, slab, stride);
      if (!wide) copy_columns(slab, stride, home, value_dim, key_dim, columns);
    });
    capture_begin = capture_end;
  }
}

}  // namespace espalier::cpu
