// Golden tensors and how near to them a backend must be.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "tensor/tensor.h"

namespace espalier::testing {

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& path) : file_(SafetensorsFile::open(path).value()) {}

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  ConstTensorView view(const std::string& name) const {
    const TensorInfo* info = file_.find(name);
    if (info == nullptr) check_failed(__FILE__, __LINE__, "no golden tensor " + name);
    return file_.view(*info);
  }
  std::span<const float> floats(const std::string& name) const { return values<float>(name); }
  std::vector<int32_t> ints(const std::string& name) const {
    const auto found = values<int32_t>(name);
    return {found.begin(), found.end()};
  }

 private:
  template <typename T>
  std::span<const T> values(const std::string& name) const {
    const ConstTensorView tensor = view(name);
    return {tensor.as<T>(), static_cast<size_t>(tensor.shape.num_elements())};
  }
  SafetensorsFile file_;
};

// Limits on |actual - expected|; the relative root mean square is that of the whole tensor.
struct Allowance {
  static constexpr double kAny = std::numeric_limits<double>::infinity();
  double max = kAny;
  double p999 = kAny;
  double mean = kAny;
  double relative_rms = kAny;
};

// One GoogleTest failure per limit that is exceeded, with what was found.
void expect_within(std::span<const float> actual, std::span<const float> expected, const Allowance& allowance, const std::string& what);

// What the oracle's README allows a backend with these activations.
struct GoldenAllowances {
  Allowance hidden, final, logits, recurrent, conv, kv;
  double margin;  // tokens must agree where the golden margin is above this
};

}  // namespace espalier::testing
