#include "backend/cpu/isa.h"

#include <string>

#include "base/cpu_features.h"
#include "base/format.h"

namespace espalier::cpu {

std::vector<const KernelTable*> available_tables() {
  const CpuFeatures& features = cpu_features();
  std::vector<const KernelTable*> tables;
#if defined(__x86_64__)
  if (features.amx_bf16) tables.push_back(&amx_table());
  if (features.avx512) tables.push_back(&avx512_table());
  if (features.avx2) tables.push_back(&avx2_table());
  if (features.avx512 && !features.amx_bf16) tables.push_back(&amx_twin_table());
#elif defined(__aarch64__)
  if (features.neon_bf16) tables.push_back(&neon_table());
#endif
  return tables;
}

Result<const KernelTable*> choose_table(std::string_view name) {
  const std::vector<const KernelTable*> tables = available_tables();
  std::string names;
  for (const KernelTable* table : tables) {
    if (name.empty() || name == table->name) return table;
    names += names.empty() ? table->name : std::string(", ") + table->name;
  }
  if (tables.empty()) {
    return make_error(ErrorCode::kUnsupported, "{}: the cpu backend needs AVX2 with FMA or Armv8.2 with BF16", cpu_features().processor);
  }
  return make_error(ErrorCode::kUnsupported, "instruction set {:?}: expected one of {} on this processor ({})", name, names,
                    cpu_features().processor);
}

}  // namespace espalier::cpu
