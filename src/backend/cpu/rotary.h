// Angles of the rotary embedding: our own power, sine and cosine in double, because libm picks variants by processor.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/attention_input.h"

namespace espalier::cpu {

// base^exponent for base >= 1, |result| finite; relative error below 1e-15.
double power(double base, double exponent);

struct SinCos {
  double sin;
  double cos;
};
// For |x| <= 2^30; absolute error below 1e-15 for |x| up to 2^20.
SinCos sin_cos(double x);

// The turning frequencies and streams of one set of RotaryParams.
class RotaryTable {
 public:
  // Recomputes when `params` differ from those of the last call.
  void prepare(const RotaryParams& params);

  int64_t half() const { return static_cast<int64_t>(frequencies_.size()); }
  // cos[half()] and sin[half()] of the row's angles: position * theta^(-2 i / rotary_dim), multiplied in FP32.
  void angles(const BatchView& batch, int32_t row, float* cos, float* sin) const;

 private:
  RotaryParams params_{.rotary_dim = 0};
  std::vector<float> frequencies_;
  std::vector<int32_t> streams_;
};

}  // namespace espalier::cpu
