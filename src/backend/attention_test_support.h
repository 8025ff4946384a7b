// Keys and values for attention tests: written by attention_input, the only op that knows a backend's layout. For tests only.
#pragma once

#include <vector>

#include "backend/row_law_test_support.h"

namespace espalier::testing {

struct AttentionShape {
  int32_t num_heads = 4;
  int32_t num_kv_heads = 2;
  int32_t head_dim = 64;
  int32_t page_size = 64;
  DType kv_dtype = DType::kF32;
  int32_t max_slots = 192;  // of one sequence
};

// Normalised and turned by the formulas of AttentionInputArgs, in double but for the FP32 angle. Positions equal in the three streams.
inline std::vector<double> normed_and_rotated(const float* x, const float* weight, int32_t head_dim, int32_t position, int32_t rotary_dim) {
  double squares = 0.0;
  for (int32_t i = 0; i < head_dim; ++i) squares += static_cast<double>(x[i]) * x[i];
  std::vector<double> y;
  for (int32_t i = 0; i < head_dim; ++i) y.push_back(x[i] / std::sqrt(squares / head_dim + 1e-6) * (1.0 + weight[i]));
  const std::vector<double> before = y;
  const int32_t half = rotary_dim / 2;
  for (int32_t i = 0; i < half; ++i) {
    const float frequency = 1.0f / static_cast<float>(std::pow(1e7, 2.0 * i / rotary_dim));
    const double angle = static_cast<float>(position) * frequency;
    const auto a = before[static_cast<size_t>(i)], b = before[static_cast<size_t>(i + half)];
    y[static_cast<size_t>(i)] = a * std::cos(angle) - b * std::sin(angle);
    y[static_cast<size_t>(i + half)] = b * std::cos(angle) + a * std::sin(angle);
  }
  return y;
}

// attention_input followed by attention, over pages of one layer out of two.
class GatedAttentionPair final : public PathOp {
 public:
  GatedAttentionPair(Backend& backend, const AttentionShape& s, Random& random)
      : shape(s),
        q_gate(random_tensor(DType::kF32, {64, s.num_heads, 2, s.head_dim}, random, -2.0f, 2.0f)),
        k(random_tensor(DType::kF32, {64, s.num_kv_heads, s.head_dim}, random, -2.0f, 2.0f)),
        v(random_tensor(DType::kF32, {64, s.num_kv_heads, s.head_dim}, random)),
        q_norm(random_tensor(DType::kF32, {s.head_dim}, random)),
        k_norm(random_tensor(DType::kF32, {s.head_dim}, random)),
        backend_(backend),
        layout_{.num_layers = 2, .num_kv_heads = s.num_kv_heads, .head_dim = s.head_dim, .page_size = s.page_size, .dtype = s.kv_dtype} {
    reset();
  }

  void reset() override { pool_ = Tensor(DType::kU8, {2 * pages_per_sequence() * static_cast<int64_t>(layout_.page_bytes())}); }
  RowBytes state(int32_t) override { return {}; }

  // Pages of two sequences lie between one another, out of order.
  std::vector<int32_t> pages(int32_t sequence) override {
    std::vector<int32_t> table;
    for (int32_t i = 0; i < pages_per_sequence(); ++i) table.push_back(2 * (pages_per_sequence() - 1 - i) + sequence);
    return table;
  }

  std::vector<RowBytes> run(const TestBatch& batch, const std::vector<int32_t>& contents) override {
    return split_rows(output(batch, contents).view());
  }

  KvView kv() { return {reinterpret_cast<std::byte*>(pool_.as<uint8_t>()), layout_}; }

  // Writes keys and values; returns q [rows, num_heads, head_dim].
  Tensor write(const TestBatch& batch, const std::vector<int32_t>& contents) {
    const Tensor q_gate_rows = take_rows(q_gate.view(), contents);
    const Tensor k_rows = take_rows(k.view(), contents);
    const Tensor v_rows = take_rows(v.view(), contents);
    Tensor q(backend_.activation_dtype(), {static_cast<int64_t>(contents.size()), shape.num_heads, shape.head_dim});
    backend_.ops().attention_input({.batch = &batch.view(),
                                    .q_gate = q_gate_rows.view(),
                                    .k = k_rows.view(),
                                    .v = v_rows.view(),
                                    .q_norm = q_norm.as<float>(),
                                    .k_norm = k_norm.as<float>(),
                                    .eps = 1e-6f,
                                    .rotary = rotary(),
                                    .kv = kv(),
                                    .layer = 1,
                                    .q = q.view()});
    return q;
  }

  Tensor output(const TestBatch& batch, const std::vector<int32_t>& contents) {
    const Tensor q = write(batch, contents);
    const Tensor q_gate_rows = take_rows(q_gate.view(), contents);
    Tensor y(backend_.activation_dtype(), {static_cast<int64_t>(contents.size()), shape.num_heads * shape.head_dim});
    backend_.ops().attention(
        {.batch = &batch.view(), .q = q.view(), .q_gate = q_gate_rows.view(), .kv = kv(), .layer = 1, .scale = scale(), .y = y.view()});
    return y;
  }

  // y of the last row of a path, in double, with q, k and v rounded as they are stored.
  std::vector<double> expected(const std::vector<int32_t>& path) const {
    const int32_t d = shape.head_dim;
    std::vector<double> y;
    const int32_t last = path.back();
    const auto rounded = [](std::vector<double> x, DType dtype) {
      for (double& value : x) {
        float stored = 0.0f;
        store_from_f32(&stored, dtype, 0, static_cast<float>(value));
        value = load_as_f32(&stored, dtype, 0);
      }
      return x;
    };
    for (int32_t h = 0; h < shape.num_heads; ++h) {
      const int32_t g = h / (shape.num_heads / shape.num_kv_heads);
      const float* q_row = q_gate.as<float>() + (last * shape.num_heads + h) * 2 * d;
      const auto q = rounded(normed_and_rotated(q_row, q_norm.as<float>(), d, static_cast<int32_t>(path.size()) - 1, rotary().rotary_dim),
                             backend_.activation_dtype());
      std::vector<double> weights;
      double total = 0.0;
      for (size_t j = 0; j < path.size(); ++j) {
        const float* k_row = k.as<float>() + (path[j] * shape.num_kv_heads + g) * d;
        const auto key =
            rounded(normed_and_rotated(k_row, k_norm.as<float>(), d, static_cast<int32_t>(j), rotary().rotary_dim), shape.kv_dtype);
        double score = 0.0;
        for (int32_t i = 0; i < d; ++i) score += q[static_cast<size_t>(i)] * key[static_cast<size_t>(i)];
        weights.push_back(std::exp(score * scale()));
        total += weights.back();
      }
      for (int32_t i = 0; i < d; ++i) {
        double sum = 0.0;
        for (size_t j = 0; j < path.size(); ++j) {
          sum += weights[j] / total * rounded({v.as<float>()[(path[j] * shape.num_kv_heads + g) * d + i]}, shape.kv_dtype)[0];
        }
        y.push_back(sum / (1.0 + std::exp(-q_row[d + i])));
      }
    }
    return y;
  }

  RotaryParams rotary() const { return {.rotary_dim = shape.head_dim / 4}; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape.head_dim)); }

  const AttentionShape shape;
  const Tensor q_gate, k, v, q_norm, k_norm;

 private:
  int32_t pages_per_sequence() const { return (shape.max_slots + shape.page_size - 1) / shape.page_size; }

  Backend& backend_;
  KvLayout layout_;
  Tensor pool_;
};

}  // namespace espalier::testing
