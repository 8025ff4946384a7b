#include "backend/cpu/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace espalier::cpu {
namespace {

TEST(Rotary, PowerIsThatOfLibm) {
  for (const double base : {1.0, 2.0, 1e4, 5e5, 1e6, 1e7}) {
    for (int i = 0; i <= 256; ++i) {
      const double exponent = i / 256.0, expected = std::pow(base, exponent);
      EXPECT_NEAR(power(base, exponent), expected, 1e-14 * expected) << base << " ^ " << exponent;
    }
  }
}

TEST(Rotary, SinAndCosUpToTheLongestContext) {
  for (int64_t i = 0; i <= 400'000; ++i) {
    const double x = i < 200'000 ? static_cast<double>(i) * 7.853981633974483e-5 : static_cast<double>(i - 200'000) * 5.24287;
    const SinCos turned = sin_cos(x);
    ASSERT_NEAR(turned.sin, std::sin(x), 1e-15) << x;
    ASSERT_NEAR(turned.cos, std::cos(x), 1e-15) << x;
    const SinCos back = sin_cos(-x);
    ASSERT_EQ(back.sin, -turned.sin);
    ASSERT_EQ(back.cos, turned.cos);
  }
}

// The nearest doubles to multiples of pi / 2 are where a reduction that is too short shows.
TEST(Rotary, SinAndCosNearMultiplesOfHalfPi) {
  for (int64_t n = 1; n < 1 << 18; n = n * 3 + 1) {
    const double x = static_cast<double>(n) * 1.5707963267948966;
    EXPECT_NEAR(sin_cos(x).sin, std::sin(x), 1e-15) << n;
    EXPECT_NEAR(sin_cos(x).cos, std::cos(x), 1e-15) << n;
  }
}

}  // namespace
}  // namespace espalier::cpu
