#include "backend/cpu/rotary.h"

#include <bit>
#include <cmath>

namespace espalier::cpu {
namespace {

constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 33 bits: products with small integers are exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

double natural_log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  // log(m) = 2 atanh(s), |s| <= 0.1716, odd series to s^23.
  const double s = (mantissa - 1.0) / (mantissa + 1.0), z = s * s;
  double series = 0.0;
  for (int n = 23; n >= 3; n -= 2) series = (series + 1.0 / n) * z;
  const double log_mantissa = 2.0 * (s + s * series);
  const auto e = static_cast<double>(exponent);
  return e * kLn2High + (log_mantissa + e * kLn2Low);
}

double exponential(double x) {
  const double n = std::nearbyint(x * 1.4426950408889634);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double series = 1.0;
  for (int i = 14; i >= 1; --i) series = 1.0 + series * r / i;  // Taylor, |r| <= 0.347
  return series * std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

}  // namespace

double power(double base, double exponent) { return exponential(exponent * natural_log(base)); }

SinCos sin_cos(double x) {
  constexpr double kHalfPi1 = 0x1.921fb54400000p+0;  // pi / 2 in three parts of 33 bits: quadrant * part is exact up to 2^20
  constexpr double kHalfPi2 = 0x1.0b4611a600000p-34;
  constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;
  const double quadrant = std::nearbyint(x * 0.6366197723675814);
  const double r = ((x - quadrant * kHalfPi1) - quadrant * kHalfPi2) - quadrant * kHalfPi3;
  const double z = r * r;
  double sine = 1.0, cosine = 1.0;  // Taylor to r^17 and r^18, |r| <= pi / 4
  for (int n = 17; n >= 3; n -= 2) sine = 1.0 - sine * z / (n * (n - 1));
  for (int n = 18; n >= 2; n -= 2) cosine = 1.0 - cosine * z / (n * (n - 1));
  sine *= r;
  switch (static_cast<int64_t>(quadrant) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

void RotaryTable::prepare(const RotaryParams& params) {
  if (params.rotary_dim == params_.rotary_dim && params.theta == params_.theta && params.mrope_section == params_.mrope_section) return;
  params_ = params;
  const int32_t half = params.rotary_dim / 2;
  frequencies_.resize(static_cast<size_t>(half));
  streams_.resize(static_cast<size_t>(half));
  for (int32_t i = 0; i < half; ++i) {
    // The reciprocal of the rounded power, as transformers computes it.
    frequencies_[static_cast<size_t>(i)] = 1.0f / static_cast<float>(power(params.theta, 2.0 * i / params.rotary_dim));
    const bool height = i % 3 == 1 && i < 3 * params.mrope_section[1];
    const bool width = i % 3 == 2 && i < 3 * params.mrope_section[2];
    streams_[static_cast<size_t>(i)] = height ? 1 : width ? 2 : 0;
  }
}

void RotaryTable::angles(const BatchView& batch, int32_t row, float* cos, float* sin) const {
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const auto position = static_cast<float>(batch.rotary_position[streams_[i] * batch.num_rows + row]);
    const float angle = position * frequencies_[i];
    const SinCos turned = sin_cos(static_cast<double>(angle));
    cos[i] = static_cast<float>(turned.cos);
    sin[i] = static_cast<float>(turned.sin);
  }
}

}  // namespace espalier::cpu
