// The inner loops of the CPU backend, one table per instruction set. Everything here is raw pointers and plain structs: the files that
// fill a table are compiled with wide instructions and must not emit anything the rest of the program could link to.
// A table has ONE summation recipe, named in `gemm`; rows never influence one another. Float mode: FTZ and DAZ on (float_mode.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::cpu {

inline constexpr int64_t kPanelRows = 16;  // outputs side by side in one packed panel
inline constexpr int64_t kPackedK = 32;    // K of packed operands is padded with zeros to a multiple of this
inline constexpr int64_t kTile = 64;       // keys per attention tile (= kAttentionTile)
inline constexpr int64_t kMaxConvKernel = 8;
inline constexpr int64_t kSlab = 16;  // columns of a recurrent state that are walked together

enum class GemmStore : int32_t { kAssign, kAdd };  // kAdd: the product is summed first, then added once

// c[r, j] = sum_k a[r, k] * b[j, k] for j < n.
struct GemmArgs {
  const void* a;     // [rows, k] operand format of the table (pack_rows)
  int64_t a_stride;  // elements from row to row
  int64_t rows;
  const uint16_t* b;     // BF16 panels of 16 outputs, each [k / 2][16][2]
  int64_t panel_stride;  // BF16 elements from panel to panel
  int64_t n;             // outputs; the last panel may be partly used
  int64_t k;             // multiple of kPackedK
  float* c;
  int64_t c_stride;
  GemmStore store;
  // As many elements as b has, wanted soon: brought into the cache while the product runs, or null. Short streams need it: the processor's
  // own prefetcher starts anew in each.
  const uint16_t* next = nullptr;
};

// y = rotate(x / rms(x) * (1 + weight)): the first 2 * half dimensions turn by pairs (i, i + half).
struct NormRotateArgs {
  const float* x;       // [n]
  const float* weight;  // [n], zero-centred
  float eps;
  int64_t n;
  const float* cos;  // [half]
  const float* sin;  // [half]
  int64_t half;
  float* scratch;  // [n]
  uint16_t* y;     // [n] BF16
};

// y[c] = silu(sum_j weight[j * weight_stride + c] * taps[j][c]) for the channels [begin, end), summed from j = 0 up.
struct ConvRowArgs {
  const uint16_t* const* taps;  // [num_taps] rows of BF16 inputs, oldest first
  int64_t num_taps;
  const float* weight;
  int64_t weight_stride;
  int64_t begin;
  int64_t end;
  float* y;
};

// One tile of keys folded into running softmax states, one per row.
struct SoftmaxTileArgs {
  const float* scores;     // [rows, kTile], unscaled
  const int32_t* visible;  // [rows] leading keys of the tile that the row sees, 0 .. kTile
  int64_t rows;
  float scale;
  float* max;  // [rows] running maximum
  float* sum;  // [rows] running sum of the rounded probabilities
  float* out;  // [rows, head_dim] running output, rescaled here
  int64_t head_dim;
  void* p;  // [rows, kTile] operand format: probabilities rounded to BF16, exactly 0 where hidden
};

// Folds the softmax state of a later span into that of the earlier ones. Rows that saw nothing of the span have max = -infinity.
struct MergeSpanArgs {
  int64_t rows;
  int64_t head_dim;
  float* max;
  float* sum;
  float* out;
  const float* span_max;
  const float* span_sum;
  const float* span_out;
};

// The delta rule over `tokens` consecutive rows for `columns` columns of one head's state.
// d = beta (v - decay S^T k); S = decay S + k d^T; o = S^T q. `from` may be `to`; tokens >= 1.
struct DeltaRunArgs {
  const float* from;  // [key_dim, columns] state before the first token
  int64_t from_stride;
  float* to;  // [key_dim, columns] state after the last token
  int64_t to_stride;
  int64_t key_dim;  // multiple of 4
  int64_t columns;  // kSlab, 2 * kSlab or 4 * kSlab
  int64_t tokens;
  const float* q;  // [tokens, key_dim] normalised and scaled
  const float* k;  // [tokens, key_dim] normalised
  int64_t qk_stride;
  const float* v;  // [tokens, columns]
  int64_t v_stride;
  const float* decay;  // [tokens]
  const float* beta;   // [tokens]
  int64_t gate_stride;
  float* o;  // [tokens, columns]
  int64_t o_stride;
};

struct KernelTable {
  const char* name;      // "avx2", "avx512", "amx", "neon"
  const char* recipe;    // the order in which gemm sums K
  size_t operand_bytes;  // of one element of the operand format: 2 (BF16) or 4 (widened to F32)

  // BF16 rows [rows, k] to the operand format [rows, k_padded], zeros behind k.
  void (*pack_rows)(const uint16_t* x, int64_t x_stride, int64_t rows, int64_t k, int64_t k_padded, void* out);
  void (*gemm)(const GemmArgs& args);

  void (*round_to_bf16)(const float* x, int64_t n, uint16_t* y);
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, uint16_t* y);
  void (*norm_rotate)(const NormRotateArgs& args);
  void (*gated_norm)(const float* o, const float* z, const float* weight, float eps, int64_t n, uint16_t* y);
  void (*silu_mul)(const float* gate, const float* up, int64_t n, uint16_t* y);

  void (*conv_row)(const ConvRowArgs& args);

  void (*softmax_tile)(const SoftmaxTileArgs& args);
  void (*merge_span)(const MergeSpanArgs& args);
  // y = out / sum * sigmoid(gate)
  void (*attention_output)(const float* out, float sum, const float* gate, int64_t n, uint16_t* y);

  // decay = exp(-exp(a_log) * softplus(a + dt_bias)), beta = sigmoid(b)
  void (*delta_gates)(const float* a, const float* b, const float* a_log, const float* dt_bias, int64_t n, float* decay, float* beta);
  // y = x / sqrt(sum x^2 + 1e-6) * scale
  void (*l2_normalize)(const float* x, int64_t n, float scale, float* y);
  void (*delta_run)(const DeltaRunArgs& args);

  // exp, sigmoid, silu, softplus over arrays: what the loops above use, for tests.
  void (*exp)(const float* x, int64_t n, float* y);
  void (*sigmoid)(const float* x, int64_t n, float* y);
  void (*silu)(const float* x, int64_t n, float* y);
  void (*softplus)(const float* x, int64_t n, float* y);
};

// The table of an instruction set. Calling what is in it needs the processor's support, naming it does not.
const KernelTable& avx2_table();
const KernelTable& avx512_table();
const KernelTable& amx_table();
const KernelTable& amx_twin_table();  // the arithmetic of amx in AVX-512 FP32 instructions
const KernelTable& neon_table();

}  // namespace espalier::cpu
