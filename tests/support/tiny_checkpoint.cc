#include "tests/support/tiny_checkpoint.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "checkpoint/model_tensors.h"
#include "checkpoint/safetensors.h"
#include "tensor/codec.h"

namespace espalier::testing {
namespace {

// SplitMix64: the standard library's distributions differ between implementations, and seeds must not.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  float uniform(float low, float high) {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    bits ^= bits >> 31;
    return low + (high - low) * static_cast<float>(bits >> 40) * 0x1p-24f;
  }

 private:
  uint64_t state_;
};

struct Range {
  float low, high;
};

Range value_range(const TensorSpec& spec) {
  const std::string& name = spec.name;
  if (name.ends_with(".A_log")) return {std::log(0.02f), std::log(0.2f)};  // decay exp(-exp(A_log) softplus(..)): about 0.7 to 1
  if (name.ends_with(".dt_bias")) return {-0.5f, 0.5f};
  if (name.ends_with("linear_attn.norm.weight")) return {0.8f, 1.2f};
  if (spec.shape.rank() == 1) return {-0.2f, 0.2f};  // zero-centred norms multiply by 1 + w
  if (name == "embed_tokens.weight") return {-1.5f, 1.5f};
  if (name.ends_with("conv1d.weight")) return {-0.8f, 0.8f};
  float gain = 1.0f;
  if (name.ends_with("in_proj_a.weight")) gain = 0.3f;
  if (name == "lm_head.weight") gain = 3.0f;
  const float bound = gain * std::sqrt(3.0f / static_cast<float>(spec.shape[spec.shape.rank() - 1]));  // variance gain^2 / k
  return {-bound, bound};
}

bool stored_as_f32(const std::string& name) { return name.ends_with(".A_log") || name.ends_with("linear_attn.norm.weight"); }

Tensor random_tensor(const TensorSpec& spec, Random& random) {
  const Range range = value_range(spec);
  Tensor tensor(stored_as_f32(spec.name) ? DType::kF32 : DType::kBf16, spec.shape);
  for (size_t i = 0; i < static_cast<size_t>(spec.shape.num_elements()); ++i) {
    store_from_f32(tensor.view().data, tensor.dtype(), i, random.uniform(range.low, range.high));
  }
  return tensor;
}

Json config_json(const TinyCheckpointSpec& spec) {
  Json layer_types = Json::array();
  for (const LayerKind kind : spec.layer_kinds)
    layer_types.push_back(kind == LayerKind::kFullAttention ? "full_attention" : "linear_attention");
  Json config = Json::object();
  config["architectures"] = Json::array({"Qwen3_5ForCausalLM"});
  config["model_type"] = "qwen3_5_text";
  config["hidden_size"] = spec.hidden_size;
  config["intermediate_size"] = spec.intermediate_size;
  config["num_hidden_layers"] = spec.layer_kinds.size();
  config["layer_types"] = std::move(layer_types);
  config["num_attention_heads"] = spec.num_heads;
  config["num_key_value_heads"] = spec.num_kv_heads;
  config["head_dim"] = spec.head_dim;
  config["partial_rotary_factor"] = spec.partial_rotary_factor;
  config["rope_theta"] = 1e7;
  config["linear_num_key_heads"] = spec.linear_num_key_heads;
  config["linear_num_value_heads"] = spec.linear_num_value_heads;
  config["linear_key_head_dim"] = spec.linear_key_head_dim;
  config["linear_value_head_dim"] = spec.linear_value_head_dim;
  config["linear_conv_kernel_dim"] = 4;
  config["max_position_embeddings"] = 32768;
  config["rms_norm_eps"] = 1e-6;
  config["mtp_num_hidden_layers"] = spec.mtp ? 1 : 0;
  config["tie_word_embeddings"] = spec.tied;
  config["vocab_size"] = spec.vocab_rows;
  return config;
}

void require(const Status& status) {
  if (!status.ok()) check_failed(__FILE__, __LINE__, status.error().message);
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "espalier_test_XXXXXX").string();
  ESPALIER_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

TemporaryDirectory make_tiny_checkpoint(const TinyCheckpointSpec& spec) {
  const Json json = config_json(spec);
  const Result<ModelConfig> config = parse_model_config(json, nullptr, "tiny checkpoint");
  if (!config.ok()) check_failed(__FILE__, __LINE__, config.error().message);
  std::vector<TensorSpec> specs = trunk_tensors(*config);
  if (spec.mtp) {
    for (TensorSpec& mtp : mtp_tensors(*config)) specs.push_back(std::move(mtp));
  }
  Random random(spec.seed);
  std::vector<Tensor> tensors;
  for (const TensorSpec& tensor : specs) tensors.push_back(random_tensor(tensor, random));
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < specs.size(); ++i) {
    const bool trunk = !specs[i].name.starts_with("mtp.") && !specs[i].name.starts_with("lm_head.");
    named.push_back({(trunk ? "model." : "") + specs[i].name, std::as_const(tensors[i]).view()});
  }
  TemporaryDirectory directory;
  require(write_safetensors(directory.path() + "/model.safetensors", named));
  require(write_file_atomic(directory.path() + "/config.json", dump_json(json)));
  require(write_file_atomic(directory.path() + "/generation_config.json", dump_json(Json{{"eos_token_id", spec.stop_ids}})));
  return directory;
}

}  // namespace espalier::testing
