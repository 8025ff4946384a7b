// The backends, and of each the instruction sets this machine has, that every op test, law and golden runs on. For tests only.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/kv_tile.h"
#include "backend/reference/reference_backend.h"
#include "backend/reference/reference_kv.h"
#include "tensor/codec.h"

namespace espalier::testing {

// One stored key or value, [head_dim]: where it lies is the backend's own affair, so each has a reader.
using KvReader = std::vector<float> (*)(const KvView& kv, int32_t layer, const int32_t* page_table, int32_t slot, KvPart part,
                                        int32_t kv_head);

struct BackendCase {
  std::string name;  // letters, digits and '_': the suffix of parametrised tests
  std::function<std::unique_ptr<Backend>()> make;
  KvReader read_kv;
};

inline std::ostream& operator<<(std::ostream& out, const BackendCase& backend) { return out << backend.name; }

inline std::vector<float> read_reference_kv(const KvView& kv, int32_t layer, const int32_t* page_table, int32_t slot, KvPart part,
                                            int32_t kv_head) {
  const std::byte* row = reference_kv_row(kv, layer, page_table, slot, part, kv_head);
  std::vector<float> values;
  for (int32_t d = 0; d < kv.layout.head_dim; ++d) values.push_back(load_as_f32(row, kv.layout.dtype, static_cast<size_t>(d)));
  return values;
}

inline std::vector<float> read_cpu_kv(const KvView& kv, int32_t layer, const int32_t* page_table, int32_t slot, KvPart part,
                                      int32_t kv_head) {
  const cpu::KvTile tile = cpu::kv_tile(kv, layer, page_table, slot, kv_head);
  const int64_t position = slot % kAttentionTile;
  std::vector<float> values;
  for (int64_t d = 0; d < kv.layout.head_dim; ++d) {
    values.push_back(bf16_to_f32(part == KvPart::kKey ? tile.keys[cpu::key_offset(kv.layout.head_dim, position, d)]
                                                      : tile.values[cpu::value_offset(position, d)]));
  }
  return values;
}

inline std::vector<BackendCase> test_backends() {
  std::vector<BackendCase> backends;
#ifndef ESPALIER_THREAD_SANITIZED  // ten times slower there, and it starts no thread
  backends.push_back({"reference", [] { return make_reference_backend(); }, read_reference_kv});
#endif
  for (const cpu::KernelTable* table : cpu::available_tables()) {
    std::string name = std::string("cpu_") + table->name;
    std::replace(name.begin(), name.end(), '-', '_');
    backends.push_back({name, [table] { return make_cpu_backend({.threads = 2, .isa = table->name}).value(); }, read_cpu_kv});
  }
  return backends;
}

}  // namespace espalier::testing
