// The backends, and of each the instruction sets this machine has, that every op test, law and golden runs on. For tests only.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backend/backend.h"
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
  return backends;
}

}  // namespace espalier::testing
