#include "base/cpu_features.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <set>
#include <utility>

#include "base/format.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace espalier {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos && line.starts_with("model name")) return line.substr(colon + 2);
  }
  return "unknown processor";
}

#if defined(__x86_64__)

struct CpuId {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuId cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuId id;
  if (__get_cpuid_count(leaf, subleaf, &id.eax, &id.ebx, &id.ecx, &id.edx) == 0) return {};
  return id;
}

constexpr bool bit(uint32_t word, int index) { return ((word >> index) & 1u) != 0; }

// XCR0: which register states the operating system saves on a task switch.
uint64_t enabled_states() {
  uint32_t low, high;
  __asm__ __volatile__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// Linux hands out the 8 KiB tile state on request only (arch_prctl(2), ARCH_REQ_XCOMP_PERM); granted to the whole process.
bool request_tile_state() {
  constexpr long kReqXcompPerm = 0x1023;
  constexpr long kTileData = 18;
  return ::syscall(SYS_arch_prctl, kReqXcompPerm, kTileData) == 0;
}

CpuFeatures detect() {
  CpuFeatures features;
  features.processor = processor_name();
  const CpuId basic = cpuid(1, 0);
  if (!bit(basic.ecx, 27)) return features;  // OSXSAVE: without it xgetbv is not there
  const uint64_t states = enabled_states();
  const CpuId extended = cpuid(7, 0);
  const CpuId extended1 = extended.eax >= 1 ? cpuid(7, 1) : CpuId{};
  const bool ymm = (states & 0x6) == 0x6;
  const bool zmm = (states & 0xE6) == 0xE6;
  const bool tiles = (states & 0x60000) == 0x60000;
  features.avx2 = ymm && bit(basic.ecx, 12) && bit(basic.ecx, 28) && bit(basic.ecx, 29) && bit(extended.ebx, 5);
  features.avx512 = features.avx2 && zmm && bit(extended.ebx, 16) && bit(extended.ebx, 17) && bit(extended.ebx, 30) &&
                    bit(extended.ebx, 31) && bit(extended.ecx, 11) && bit(extended1.eax, 5);
  features.amx_bf16 = features.avx512 && tiles && bit(extended.edx, 22) && bit(extended.edx, 24) && request_tile_state();
  return features;
}

#elif defined(__aarch64__)

CpuFeatures detect() {
  CpuFeatures features;
  features.processor = processor_name();
  features.neon_bf16 = (::getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
  return features;
}

#else
#error "espalier runs on x86-64 and AArch64"
#endif

cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  return set;
}

int read_int(const std::string& path, int otherwise) {
  std::ifstream file(path);
  int value = 0;
  return file >> value ? value : otherwise;
}

// cpu.max of control groups v2: "quota period" in microseconds, or "max period".
int quota_cpus() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || period <= 0) return CPU_SETSIZE;
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

int count_physical_cores() {
  const cpu_set_t set = affinity();
  std::set<std::pair<int, int>> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const std::string topology = format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    cores.emplace(read_int(topology + "physical_package_id", 0), read_int(topology + "core_id", cpu));
  }
  return std::max(1, std::min(static_cast<int>(cores.size()), quota_cpus()));
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

int available_cpus() {
  const cpu_set_t set = affinity();
  return std::max(1, CPU_COUNT(&set));
}

int physical_cores() {
  static const int cores = count_physical_cores();
  return cores;
}

}  // namespace espalier
