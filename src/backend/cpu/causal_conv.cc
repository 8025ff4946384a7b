#include "ops/causal_conv.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backend/cpu/cpu_ops.h"

namespace espalier::cpu {
namespace {

constexpr int64_t kSliceChannels = 512;  // of one piece of work: its weights and a few rows stay in L1

using Taps = std::array<const uint16_t*, kMaxConvKernel>;

// The inputs of one sequence, rounded: those of this pass by row, those before it in the state slot.
struct Inputs {
  const uint16_t* rounded;  // [rows, conv_dim]
  const uint16_t* kept;     // [num_kept, conv_dim], oldest first
  int64_t conv_dim;
  int32_t num_kept;
  const int32_t* parent;

  // taps[count - 1] = the input of `row` (-1: the newest kept one), those before it = its predecessors along the path.
  void path_to(int32_t row, int32_t count, Taps& taps) const {
    int32_t kept_index = num_kept - 1;
    for (int32_t j = count - 1; j >= 0; --j) {
      if (row >= 0) {
        taps[static_cast<size_t>(j)] = rounded + row * conv_dim;
        row = parent[row];
      } else {
        taps[static_cast<size_t>(j)] = kept + kept_index-- * conv_dim;
      }
    }
  }
};

// to[j, c] = weight[c, j]. Every model so far has four taps: known at compile time, the loop is vectorised, and one row is not
// dominated by it.
template <int32_t kTaps>
void transpose(const float* weight, int64_t begin, int64_t end, int64_t conv_dim, int32_t num_taps, float* to) {
  const int32_t taps = kTaps > 0 ? kTaps : num_taps;
  for (int64_t c = begin; c < end; ++c) {
    for (int32_t j = 0; j < taps; ++j) to[j * conv_dim + c] = weight[c * taps + j];
  }
}

// kept[j] = taps[j] for one slice of channels, oldest first. Taps may be rows of `kept` itself, none before its own place.
void keep_inputs(const Taps& taps, int32_t count, int64_t begin, int64_t channels, int64_t conv_dim, uint16_t* kept) {
  for (int32_t j = 0; j < count; ++j) {
    std::memmove(kept + j * conv_dim + begin, taps[static_cast<size_t>(j)] + begin, static_cast<size_t>(channels) * sizeof(uint16_t));
  }
}

}  // namespace

void CpuOps::causal_conv(const CausalConvArgs& args) {
  const ScopedFloatMode mode;
  const BatchView& batch = *args.batch;
  const StateLayout& layout = args.state.layout;
  const int64_t conv_dim = layout.conv_dim;
  const int32_t num_taps = layout.conv_kernel, num_kept = num_taps - 1;
  auto* weight = shared_[0].get<float>(num_taps * conv_dim);  // [num_taps, conv_dim]
  auto* rounded = shared_[1].get<uint16_t>(batch.num_rows * conv_dim);
  const auto* u = args.u.as<float>();
  auto* y = args.y.as<float>();

  // Channels are independent, so one loop over slices of them does everything.
  for_ranges(conv_dim, kSliceChannels, [&](int64_t begin, int64_t end, int) {
    const int64_t channels = end - begin;
    if (num_taps == 4) {
      transpose<4>(args.weight, begin, end, conv_dim, num_taps, weight);
    } else {
      transpose<0>(args.weight, begin, end, conv_dim, num_taps, weight);
    }
    for (int64_t r = 0; r < batch.num_rows; ++r) table_.round_to_bf16(u + r * conv_dim + begin, channels, rounded + r * conv_dim + begin);
    int32_t capture = 0;
    for (int32_t s = 0; s < batch.num_sequences; ++s) {
      const SequenceView& sequence = batch.sequences[s];
      auto* kept = reinterpret_cast<uint16_t*>(args.state.conv(sequence.state_slot, args.layer));
      const Inputs inputs{rounded, kept, conv_dim, num_kept, batch.parent};
      Taps taps;
      const int32_t last = sequence.row_begin + sequence.num_rows - 1;
      for (int32_t row = sequence.row_begin; row <= last; ++row) {
        inputs.path_to(row, num_taps, taps);
        table_.conv_row({.taps = taps.data(),
                         .num_taps = num_taps,
                         .weight = weight,
                         .weight_stride = conv_dim,
                         .begin = begin,
                         .end = end,
                         .y = y + row * conv_dim});
      }
      while (capture < batch.num_captures && batch.capture_row[capture] <= last) {
        inputs.path_to(batch.capture_row[capture], num_kept, taps);
        keep_inputs(taps, num_kept, begin, channels, conv_dim,
                    reinterpret_cast<uint16_t*>(args.state.conv(batch.capture_slot[capture], args.layer)));
        ++capture;
      }
      if (sequence.keep == Keep::kAll && sequence.num_rows > 0) {
        inputs.path_to(last, num_kept, taps);
        keep_inputs(taps, num_kept, begin, channels, conv_dim, kept);
      }
    }
  });
}

}  // namespace espalier::cpu
