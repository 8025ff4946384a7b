#include "tensor/codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace espalier {
namespace {

TEST(Codec, EveryBf16ValueSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = bf16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value)))) << bits;
    } else {
      EXPECT_EQ(f32_to_bf16(value), bits);
    }
  }
}

TEST(Codec, EveryF16ValueSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(f32_to_f16(value), bits);
  }
}

TEST(Codec, EveryE4m3ValueSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 0x100; ++bits) {
    const float value = e4m3_to_f32(static_cast<uint8_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(f32_to_e4m3(value), bits);
  }
}

TEST(Codec, Bf16TiesGoToEven) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000u)), 0x3F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000u)), 0x3F82);
}

// Neighbouring E4M3 values and the point half way between them: the tie goes to the even code.
TEST(Codec, E4m3RoundsToNearestEven) {
  for (uint8_t code = 0; code < 0x7E; ++code) {
    const float low = e4m3_to_f32(code), high = e4m3_to_f32(static_cast<uint8_t>(code + 1));
    const float middle = (low + high) / 2;
    EXPECT_EQ(f32_to_e4m3(middle), (code & 1) != 0 ? code + 1 : code);
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, 1000.0f)), code + 1);
  }
  EXPECT_EQ(f32_to_e4m3(1e9f), 0x7E);
  EXPECT_EQ(f32_to_e4m3(-1e9f), 0xFE);
}

}  // namespace
}  // namespace espalier
