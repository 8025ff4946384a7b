// What the processor can do and the operating system allows, and how many cores this process may use. Read once; thread-safe.
#pragma once

#include <string>

namespace espalier {

struct CpuFeatures {
  bool avx2 = false;       // AVX2, FMA, F16C; the OS saves ymm registers
  bool avx512 = false;     // F, BW, VL, DQ, VNNI and BF16; the OS saves zmm and mask registers
  bool amx_bf16 = false;   // AMX tiles with BF16; the OS has granted this process the tile state
  bool neon_bf16 = false;  // Armv8.2 with the BF16 extension
  std::string processor;   // "AMD EPYC ...", for reports
};

const CpuFeatures& cpu_features();

// Logical processors in this process's affinity mask, at least 1.
int available_cpus();

// Physical cores among them, capped by the CPU quota of the control group: the default number of threads, at least 1.
int physical_cores();

}  // namespace espalier
