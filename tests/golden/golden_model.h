// The fixture of the model goldens: each tiny checkpoint of the oracle on each backend, with what the oracle's README allows there.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "tensor/codec.h"
#include "tests/support/golden_compare.h"
#include "tests/support/model_harness.h"
#include "tests/support/oracle.h"

namespace espalier::testing {

inline GoldenAllowances golden_allowances(const std::string& model, DType activation_dtype) {
  const bool tied = model == "tiny-tied";
  if (activation_dtype == DType::kF32) {
    return {.hidden = {.max = 3e-4},
            .final = {.max = 3e-4},
            .logits = {.max = 3e-4},
            .recurrent = {.max = 1e-4},
            .conv = {.max = 1e-4},
            .kv = {.max = 1e-4},
            .margin = 1e-3};
  }
  const Allowance logits = tied ? Allowance{.max = 1.5, .p999 = 0.75, .mean = 0.12} : Allowance{.max = 0.8, .p999 = 0.35, .mean = 0.06};
  return {.hidden = {.relative_rms = tied ? 0.045 : 0.025},
          .final = {.relative_rms = tied ? 0.05 : 0.03},
          .logits = logits,
          .recurrent = {.relative_rms = tied ? 0.065 : 0.03},
          .conv = {.relative_rms = tied ? 0.04 : 0.025},
          .kv = {.relative_rms = tied ? 0.04 : 0.025},
          .margin = 2 * logits.p999};
}

// Keeps what a pass shows, as F32: [0] the embedding, [i] the residual stream after layer i - 1, [L + 1] the post-final-norm rows.
class HiddenRecorder final : public HiddenObserver {
 public:
  void on_hidden(int32_t, const ConstTensorView& rows) override { recorded_.push_back(to_f32(rows)); }
  void clear() { recorded_.clear(); }
  const Tensor& operator[](int32_t i) const { return recorded_[static_cast<size_t>(i)]; }

 private:
  std::vector<Tensor> recorded_;
};

struct GoldenCase {
  std::string model;
  BackendCase backend;
};

inline std::ostream& operator<<(std::ostream& out, const GoldenCase& c) { return out << c.model << " on " << c.backend; }

inline std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  for (const char* model : {"tiny-hybrid", "tiny-tied"}) {
    for (const BackendCase& backend : test_backends()) cases.push_back({model, backend});
  }
  return cases;
}

inline std::string golden_case_name(const ::testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.model + "_" + info.param.backend.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class GoldenModelTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    ESPALIER_REQUIRE_SHARED();
    const std::string directory = shared_path("oracle/" + GetParam().model);
    harness_.emplace(
        GetParam().backend, directory,
        HarnessOptions{.num_sequences = 1, .num_spare_slots = 16, .max_tokens = 640, .max_rows = 520, .max_uncommitted_rows = 16});
    allowances_ = golden_allowances(GetParam().model, harness_->state().layout.activation_dtype);
    trunk_.emplace(directory + "/golden/trunk.safetensors");
    manifest_ = manifest("trunk");
  }

  Json manifest(const std::string& name) const {
    const std::string path = shared_path("oracle/" + GetParam().model + "/golden/" + name + ".json");
    return parse_json(read_file(path, size_t{1} << 26).value(), path).value();
  }
  std::vector<std::string> prompts() const {
    std::vector<std::string> names;
    for (const auto& entry : manifest_["prompts"].items()) names.push_back(entry.key());
    return names;
  }

  // The largest logit among the real ids (the lowest of equals) and how far the next one is below it.
  struct Choice {
    int32_t token;
    float margin;
  };
  Choice choose(const ConstTensorView& logits, int64_t row) const {
    const auto num_ids = manifest_["vtok"].get<int32_t>();
    const float* values = logits.as<float>() + row * logits.shape[1];
    const auto best = static_cast<int32_t>(std::max_element(values, values + num_ids) - values);
    float second = -std::numeric_limits<float>::infinity();
    for (int32_t i = 0; i < num_ids; ++i) second = i == best ? second : std::max(second, values[i]);
    return {best, values[best] - second};
  }

  // A slot's recurrent matrices summed over one side, as the goldens hold them: with probe_k [layers, Hv, dv], with probe_v [layers, Hv,
  // dk].
  std::vector<float> recurrent_probe(int32_t slot, const std::string& probe_name) const {
    const StateLayout layout = harness_->state().layout;
    const auto probe = trunk_->floats(probe_name);
    const bool over_keys = probe_name == "probe_k";
    const int32_t dk = layout.key_head_dim, dv = layout.value_head_dim;
    std::vector<float> sums;
    for (int32_t layer = 0; layer < layout.num_layers; ++layer) {
      for (int32_t h = 0; h < layout.num_value_heads; ++h) {
        const float* s = harness_->state().recurrent(slot, layer) + static_cast<int64_t>(h) * dk * dv;
        for (int32_t out = 0; out < (over_keys ? dv : dk); ++out) {
          double sum = 0.0;
          for (int32_t i = 0; i < (over_keys ? dk : dv); ++i) {
            sum += static_cast<double>(probe[static_cast<size_t>(i)]) * (over_keys ? s[i * dv + out] : s[out * dv + i]);
          }
          sums.push_back(static_cast<float>(sum));
        }
      }
    }
    return sums;
  }

  // A slot's kept convolution inputs in the order of the goldens: [layers, conv_dim, kernel - 1].
  std::vector<float> kept_inputs(int32_t slot) const {
    const StateLayout layout = harness_->state().layout;
    std::vector<float> inputs;
    for (int32_t layer = 0; layer < layout.num_layers; ++layer) {
      for (int32_t c = 0; c < layout.conv_dim; ++c) {
        for (int32_t j = 0; j < layout.conv_kernel - 1; ++j) {
          inputs.push_back(
              load_as_f32(harness_->state().conv(slot, layer), layout.activation_dtype, static_cast<size_t>(j * layout.conv_dim + c)));
        }
      }
    }
    return inputs;
  }

  void expect_states(int32_t slot, const std::string& prefix) const {
    expect_within(recurrent_probe(slot, "probe_k"), trunk_->floats(prefix + "S_probe_k"), allowances_.recurrent, prefix + "S_probe_k");
    expect_within(recurrent_probe(slot, "probe_v"), trunk_->floats(prefix + "S_probe_v"), allowances_.recurrent, prefix + "S_probe_v");
  }

  // Stored keys or values of slots [begin, begin + count) in one full-attention layer: [count, num_kv_heads, head_dim].
  std::vector<float> stored(KvPart part, int32_t kv_layer, int32_t begin, int32_t count) const {
    std::vector<float> rows;
    for (int32_t slot = begin; slot < begin + count; ++slot) {
      for (int32_t h = 0; h < harness_->config().num_kv_heads; ++h) {
        const std::vector<float> row = GetParam().backend.read_kv(harness_->kv(), kv_layer, harness_->pages(0).data(), slot, part, h);
        rows.insert(rows.end(), row.begin(), row.end());
      }
    }
    return rows;
  }

  std::optional<ModelHarness> harness_;
  std::optional<GoldenFile> trunk_;
  Json manifest_;
  GoldenAllowances allowances_;
};

// Rows `rows` of an F32 tensor, flattened.
inline std::vector<float> rows_of(const ConstTensorView& tensor, const std::vector<int32_t>& rows) {
  std::vector<float> values;
  for (const int32_t row : rows) {
    const ConstTensorView view = tensor.slice(row, 1);
    values.insert(values.end(), view.as<float>(), view.as<float>() + view.shape.num_elements());
  }
  return values;
}

}  // namespace espalier::testing
