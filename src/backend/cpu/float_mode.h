// The floating-point mode of every thread inside an op: denormals are flushed to zero, in and out (FTZ and DAZ), rounding to nearest.
// VDPBF16PS and TDPBF16PS flush whatever the mode says, so all other arithmetic does likewise; and no input makes an op slow.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace espalier::cpu {

#if defined(__x86_64__)
inline unsigned float_mode() { return _mm_getcsr(); }
inline void set_float_mode(unsigned mode) { _mm_setcsr(mode); }
inline constexpr unsigned kOpFloatMode = 0x9FC0;  // FTZ, DAZ, all exceptions masked, to nearest
#elif defined(__aarch64__)
inline uint64_t float_mode() {
  uint64_t mode;
  __asm__ __volatile__("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
inline void set_float_mode(uint64_t mode) { __asm__ __volatile__("msr fpcr, %0" : : "r"(mode)); }
inline constexpr uint64_t kOpFloatMode = uint64_t{1} << 24;  // FZ, to nearest
#endif

// What a pool's threads run with all the time.
inline void enter_op_float_mode() { set_float_mode(kOpFloatMode); }

// What the caller runs with while an op lasts.
class ScopedFloatMode {
 public:
  ScopedFloatMode() : saved_(float_mode()) { enter_op_float_mode(); }
  ~ScopedFloatMode() { set_float_mode(saved_); }
  ScopedFloatMode(const ScopedFloatMode&) = delete;
  ScopedFloatMode& operator=(const ScopedFloatMode&) = delete;

 private:
  decltype(float_mode()) saved_;
};

}  // namespace espalier::cpu
