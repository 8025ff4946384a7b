// What the machine can do at best, measured in the same run as what is compared with it: memory bandwidth and the dot-product peak of
// each instruction set.
#pragma once

#include <string_view>

#include "base/thread_pool.h"

namespace espalier::bench {

// Bytes per second, best of 5 reads of 1 GiB: all threads of the pool, four streams each, memory of the kind that weights lie in.
double read_bandwidth(ThreadPool& pool);

// Floating-point operations per second (a multiply and an add are two) of the product instruction of a kernel table, on registers
// only, best of 5: vdpbf16ps for "avx512", tdpbf16ps for "amx", FP32 FMA for "avx2", "neon" and "amx-twin".
double dot_peak(ThreadPool& pool, std::string_view table);

}  // namespace espalier::bench
