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
#include "backend/reference/reference_backend.h"

namespace espalier::testing {

struct BackendCase {
  std::string name;  // letters, digits and '_': the suffix of parametrised tests
  std::function<std::unique_ptr<Backend>()> make;
};

inline std::ostream& operator<<(std::ostream& out, const BackendCase& backend) { return out << backend.name; }

inline std::vector<BackendCase> test_backends() {
  std::vector<BackendCase> backends;
  backends.push_back({"reference", [] { return make_reference_backend(); }});
  for (const cpu::KernelTable* table : cpu::available_tables()) {
    std::string name = std::string("cpu_") + table->name;
    std::replace(name.begin(), name.end(), '-', '_');
    backends.push_back({name, [table] { return make_cpu_backend({.threads = 2, .isa = table->name}).value(); }});
  }
  return backends;
}

}  // namespace espalier::testing
