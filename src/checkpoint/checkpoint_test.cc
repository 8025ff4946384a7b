#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/json.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kConfig =
    R"({"architectures":["Qwen3_5ForCausalLM"],"model_type":"qwen3_5_text","hidden_size":8,"intermediate_size":12,
"num_hidden_layers":2,"layer_types":["linear_attention","full_attention"],"num_attention_heads":2,"num_key_value_heads":1,"head_dim":8,
"linear_num_key_heads":1,"linear_num_value_heads":2,"linear_key_head_dim":4,"linear_value_head_dim":4,"vocab_size":16,
"mtp_num_hidden_layers":1,"tie_word_embeddings":false,"eos_token_id":3})";

std::string raw_name(const std::string& canonical, const std::string& prefix = "model.") {
  return canonical.starts_with("mtp.") || canonical.starts_with("lm_head.") ? canonical : prefix + canonical;
}

// A directory with one valid tiny checkpoint that a test then spoils. Every tensor holds its own number.
class CheckpointTest : public ::testing::Test {
 protected:
  using Tensors = std::map<std::string, Tensor>;

  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "checkpoint_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    write("config.json", kConfig);
    const Result<ModelConfig> config = parse_model_config(*parse_json(kConfig, "config"), nullptr, "config");
    ASSERT_TRUE(config.ok()) << config.error().message;
    float value = 1;
    for (const auto& specs : {trunk_tensors(*config), mtp_tensors(*config)}) {
      for (const TensorSpec& spec : specs) tensors_.emplace(raw_name(spec.name), filled(DType::kBf16, spec.shape, value++));
    }
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static Tensor filled(DType dtype, const Shape& shape, float value) {
    Tensor tensor(dtype, shape);
    for (size_t i = 0; i < static_cast<size_t>(shape.num_elements()); ++i) {
      if (dtype == DType::kBf16) tensor.as<uint16_t>()[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      if (dtype == DType::kF32) tensor.as<float>()[i] = value;
    }
    return tensor;
  }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  void write(const std::string& name, std::string_view text) {
    const Status written = write_file_atomic(path(name), text);
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  void write_tensors(
      const std::string& name, const std::function<bool(const std::string&)>& belongs = [](const std::string&) { return true; }) {
    std::vector<NamedTensor> chosen;
    for (const auto& [tensor, data] : tensors_) {
      if (belongs(tensor)) chosen.push_back({tensor, data.view()});
    }
    const Status written = write_safetensors(path(name), chosen);
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  static bool in_first(const std::string& name) { return name < "model.layers.1."; }
  // Two shards and their index; `change` may spoil the index first.
  void write_shards(const std::function<void(Json&)>& change = [](Json&) {}) {
    write_tensors("a.safetensors", in_first);
    write_tensors("b.safetensors", [](const std::string& name) { return !in_first(name); });
    Json map = Json::object();
    for (const auto& entry : tensors_) map[entry.first] = in_first(entry.first) ? "a.safetensors" : "b.safetensors";
    change(map);
    Json index = Json::object();
    index["weight_map"] = std::move(map);
    write("model.safetensors.index.json", dump_json(index));
  }
  void change_config(std::string_view key, const Json& value) {
    Json config = *parse_json(kConfig, "config");
    config[std::string(key)] = value;
    write("config.json", dump_json(config));
  }

  Checkpoint opened() {
    Result<Checkpoint> checkpoint = Checkpoint::open(directory_);
    if (!checkpoint.ok()) ADD_FAILURE() << checkpoint.error().message;
    EXPECT_TRUE(checkpoint.ok());
    return std::move(checkpoint).value();
  }
  std::string failure() const {
    const Result<Checkpoint> checkpoint = Checkpoint::open(directory_);
    EXPECT_FALSE(checkpoint.ok());
    if (checkpoint.ok()) return "";
    EXPECT_THAT(checkpoint.error().message, AllOf(HasSubstr(directory_), Not(HasSubstr("\n"))));
    return checkpoint.error().message;
  }

  std::string directory_;
  Tensors tensors_;
};

size_t total_tensors(const Checkpoint& checkpoint, TensorKind kind) {
  for (const InventoryEntry& entry : checkpoint.inventory()) {
    if (entry.kind == kind) return static_cast<size_t>(entry.num_tensors);
  }
  return 0;
}

TEST_F(CheckpointTest, OpensOneFile) {
  write_tensors("model.safetensors");
  const Checkpoint checkpoint = opened();
  EXPECT_TRUE(checkpoint.config().has_mtp);
  EXPECT_FALSE(checkpoint.config().tie_word_embeddings);
  EXPECT_THAT(checkpoint.notes(), IsEmpty());
  const Result<ConstTensorView> norm = checkpoint.tensor("norm.weight");
  ASSERT_TRUE(norm.ok());
  EXPECT_EQ(norm->as<uint16_t>()[0], tensors_.at("model.norm.weight").as<uint16_t>()[0]);
  EXPECT_TRUE(checkpoint.has("lm_head.weight"));
  EXPECT_FALSE(checkpoint.has("model.norm.weight"));
  const Result<ConstTensorView> absent = checkpoint.tensor("layers.7.A_log");
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(absent.error().message, HasSubstr("layers.7.A_log"));
}

TEST_F(CheckpointTest, OpensShards) {
  write_shards();
  const Checkpoint checkpoint = opened();
  EXPECT_TRUE(checkpoint.tensor("embed_tokens.weight").ok());
  EXPECT_TRUE(checkpoint.tensor("layers.1.self_attn.q_proj.weight").ok());
}

TEST_F(CheckpointTest, InventoryCountsEveryTensorOnce) {
  tensors_.emplace("model.visual.blocks.0.attn.qkv.weight", filled(DType::kBf16, {3, 2}, 0));
  tensors_.emplace("model.layers.1.self_attn.rotary_emb.inv_freq", filled(DType::kF32, {2}, 0));
  write_tensors("model.safetensors");
  const Checkpoint checkpoint = opened();
  EXPECT_EQ(total_tensors(checkpoint, TensorKind::kEmbedding), 1u);
  EXPECT_EQ(total_tensors(checkpoint, TensorKind::kAttention), 6u);
  EXPECT_EQ(total_tensors(checkpoint, TensorKind::kGatedDeltaNet), 9u);
  EXPECT_EQ(total_tensors(checkpoint, TensorKind::kMlp), 6u);
  EXPECT_EQ(total_tensors(checkpoint, TensorKind::kNorm), 5u);
  EXPECT_EQ(total_tensors(checkpoint, TensorKind::kHead), 1u);
  EXPECT_EQ(total_tensors(checkpoint, TensorKind::kMtp), 15u);
  EXPECT_EQ(total_tensors(checkpoint, TensorKind::kVisionSkipped), 1u);
  EXPECT_EQ(total_tensors(checkpoint, TensorKind::kIgnored), 1u);
  EXPECT_FALSE(checkpoint.has("visual.blocks.0.attn.qkv.weight"));
}

TEST_F(CheckpointTest, OneDimensionalTensorsMayBeFloat32) {
  tensors_.at("model.layers.0.linear_attn.A_log") = filled(DType::kF32, {2}, 0.5f);
  write_tensors("model.safetensors");
  const Checkpoint checkpoint = opened();
  EXPECT_EQ(checkpoint.tensor("layers.0.linear_attn.A_log")->dtype, DType::kF32);
}

TEST_F(CheckpointTest, NotADirectory) {
  EXPECT_THAT(Checkpoint::open(path("nowhere")).error().message,
              AllOf(HasSubstr("nowhere"), HasSubstr("expected a model directory, found nothing")));
  EXPECT_THAT(Checkpoint::open(path("config.json")).error().message, HasSubstr("found a file"));
}

TEST_F(CheckpointTest, ConfigAbsentOrGarbage) {
  write_tensors("model.safetensors");
  write("config.json", "{\"model_type\":");
  EXPECT_THAT(failure(), HasSubstr("config.json: not valid JSON"));
  write("config.json", "");
  EXPECT_THAT(failure(), HasSubstr("config.json: not valid JSON"));
  std::filesystem::remove(path("config.json"));
  EXPECT_THAT(failure(), HasSubstr("config.json: cannot open: No such file"));
  std::filesystem::create_directory(path("config.json"));
  EXPECT_THAT(failure(), HasSubstr("config.json: not a regular file"));
}

TEST_F(CheckpointTest, GenerationConfigAddsStopIdsOrIsRefused) {
  write_tensors("model.safetensors");
  write("generation_config.json", R"({"eos_token_id":[5]})");
  EXPECT_EQ(opened().config().stop_ids, (std::vector<TokenId>{3, 5}));
  write("generation_config.json", "nonsense");
  EXPECT_THAT(failure(), HasSubstr("generation_config.json: not valid JSON"));
}

TEST_F(CheckpointTest, NoWeights) {
  EXPECT_THAT(failure(), HasSubstr("no weights: neither model.safetensors.index.json nor any *.safetensors"));
}

TEST_F(CheckpointTest, WithoutAnIndexTheOnlyFileIsTheModel) {
  write_tensors("weights.safetensors");
  EXPECT_TRUE(opened().has("norm.weight"));
}

TEST_F(CheckpointTest, SeveralFilesNeedAnIndex) {
  write_tensors("x.safetensors");
  write_tensors("y.safetensors");
  EXPECT_THAT(failure(), HasSubstr("2 *.safetensors files, expected model.safetensors.index.json"));
}

TEST_F(CheckpointTest, StrayFilesAreIgnoredWithANote) {
  write_shards();
  write("stray.safetensors", "not even a safetensors file");
  EXPECT_THAT(opened().notes(), Contains(AllOf(HasSubstr("ignored"), HasSubstr("stray.safetensors"))));
  std::filesystem::remove(path("model.safetensors.index.json"));
  write_tensors("model.safetensors");
  EXPECT_THAT(opened().notes(), Contains(HasSubstr("a.safetensors, b.safetensors, stray.safetensors")));
}

// The three ways a tensor can be missing are told apart.
TEST_F(CheckpointTest, NoFileEverHadTheTensor) {
  tensors_.erase("model.layers.1.mlp.up_proj.weight");
  write_shards();
  EXPECT_THAT(failure(), HasSubstr("index.json: tensor layers.1.mlp.up_proj.weight is missing: expected [12, 8], found in no file"));
}

TEST_F(CheckpointTest, TheShardIsAbsent) {
  write_shards();
  std::filesystem::remove(path("b.safetensors"));
  EXPECT_THAT(failure(), AllOf(HasSubstr("b.safetensors: the file is absent, expected by the index for"),
                               HasSubstr("the first 'model.layers.1.input_layernorm.weight'")));
}

TEST_F(CheckpointTest, TheShardLacksTheTensor) {
  write_shards();
  write_tensors("b.safetensors", [](const std::string& name) { return !in_first(name) && name != "model.norm.weight"; });
  EXPECT_THAT(failure(),
              HasSubstr("b.safetensors: the file lacks tensor 'model.norm.weight', expected here by the index, found in no file"));
}

TEST_F(CheckpointTest, TheIndexNamesTheWrongShard) {
  write_shards([](Json& map) { map["model.norm.weight"] = "a.safetensors"; });
  EXPECT_THAT(failure(), AllOf(HasSubstr("a.safetensors: the file lacks tensor 'model.norm.weight'"), HasSubstr("b.safetensors")));
}

TEST_F(CheckpointTest, AStaleIndexThatDoesNotListANeededTensor) {
  write_shards([](Json& map) { map.erase("model.norm.weight"); });
  EXPECT_THAT(failure(),
              AllOf(HasSubstr("tensor 'model.norm.weight' is missing: expected in the index, found only in"), HasSubstr("b.safetensors")));
}

TEST_F(CheckpointTest, TheSameTensorInTwoShards) {
  write_shards();
  write_tensors("a.safetensors", [](const std::string& name) { return in_first(name) || name == "model.norm.weight"; });
  EXPECT_THAT(failure(),
              AllOf(HasSubstr("tensor 'model.norm.weight' is duplicated"), HasSubstr("a.safetensors"), HasSubstr("b.safetensors")));
}

TEST_F(CheckpointTest, AnIndexCannotLeaveTheDirectory) {
  for (const char* name : {"../b.safetensors", "/tmp/b.safetensors", "sub/b.safetensors", "b.bin", ""}) {
    write_shards([name](Json& map) { map["model.norm.weight"] = name; });
    EXPECT_THAT(failure(),
                AllOf(HasSubstr("model.norm.weight"), HasSubstr("expected the name of a .safetensors file in the same directory")))
        << name;
  }
  write_shards([](Json& map) { map["model.norm.weight"] = 7; });
  EXPECT_THAT(failure(), HasSubstr("found 7"));
}

TEST_F(CheckpointTest, AnIndexOfTheWrongForm) {
  for (const char* text :
       {"{}", "[]", R"({"weight_map":[]})", R"({"weight_map":{}})", "{", R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})"}) {
    write("model.safetensors.index.json", text);
    EXPECT_THAT(failure(), HasSubstr("model.safetensors.index.json: ")) << text;
  }
}

TEST_F(CheckpointTest, ATruncatedShard) {
  write_shards();
  std::filesystem::resize_file(path("b.safetensors"), std::filesystem::file_size(path("b.safetensors")) - 1);
  EXPECT_THAT(failure(), AllOf(HasSubstr("b.safetensors: truncated"), HasSubstr("1 bytes after the end")));
  std::filesystem::resize_file(path("b.safetensors"), 0);
  EXPECT_THAT(failure(), HasSubstr("b.safetensors: expected a safetensors file, found 0 bytes"));
}

TEST_F(CheckpointTest, AMisshapenTensor) {
  tensors_.at("model.layers.1.self_attn.q_proj.weight") = filled(DType::kBf16, {16, 8}, 0);
  write_tensors("model.safetensors");
  EXPECT_THAT(
      failure(),
      HasSubstr(
          "model.safetensors: tensor 'model.layers.1.self_attn.q_proj.weight': expected shape [32, 8] (by config.json), found [16, 8]"));
}

TEST_F(CheckpointTest, AConvolutionInAnotherLayout) {
  tensors_.at("model.layers.0.linear_attn.conv1d.weight") = filled(DType::kBf16, {16, 4, 1}, 0);
  write_tensors("model.safetensors");
  EXPECT_THAT(failure(), AllOf(HasSubstr("conv1d.weight"), HasSubstr("[16, 1, 4]"), HasSubstr("[16, 4, 1]")));
}

TEST_F(CheckpointTest, ATensorOfCodesIsNotAFloatTensor) {
  tensors_.at("model.layers.1.mlp.up_proj.weight") = filled(DType::kF8E4M3, {12, 8}, 0);
  write_tensors("model.safetensors");
  EXPECT_THAT(failure(), AllOf(HasSubstr("'model.layers.1.mlp.up_proj.weight': expected BF16, F16 or F32 [12, 8], found F8_E4M3 [12, 8]"),
                               HasSubstr("quantised checkpoints are not supported yet")));
}

TEST_F(CheckpointTest, QuantisedFilesWithoutAWordInTheConfig) {
  tensors_.emplace("model.layers.1.mlp.up_proj.weight_scale", filled(DType::kF32, {1}, 1));
  write_tensors("model.safetensors");
  EXPECT_THAT(failure(), AllOf(HasSubstr("up_proj.weight_scale"), HasSubstr("quantised checkpoints are not supported yet")));
}

TEST_F(CheckpointTest, QuantisationStatedBesideTheConfig) {
  write_tensors("model.safetensors");
  write("hf_quant_config.json", R"({"quantization":{"quant_algo":"W4A16_NVFP4"}})");
  EXPECT_THAT(failure(), HasSubstr("hf_quant_config.json: quantised checkpoints are not supported yet: quant_algo \"W4A16_NVFP4\""));
  write("hf_quant_config.json", R"({"quantization":{"quant_algo":null}})");
  EXPECT_TRUE(opened().has("norm.weight"));
}

TEST_F(CheckpointTest, ConfigAndTensorsDisagreeInSize) {
  write_tensors("model.safetensors");
  change_config("hidden_size", 131072);
  EXPECT_THAT(failure(), AllOf(HasSubstr("embed_tokens.weight"), HasSubstr("[16, 131072]"), HasSubstr("[16, 8]")));
}

TEST_F(CheckpointTest, UnknownWeightsAreRefusedAndListed) {
  tensors_.emplace("model.layers.0.mlp.gate_proj.bias", filled(DType::kBf16, {12}, 0));
  tensors_.emplace("model.layers.2.input_layernorm.weight", filled(DType::kBf16, {8}, 0));
  tensors_.emplace("adapter.weight", filled(DType::kBf16, {8}, 0));
  tensors_.emplace("zebra.weight", filled(DType::kBf16, {8}, 0));
  write_tensors("model.safetensors");
  EXPECT_THAT(failure(), HasSubstr("unknown tensors, expected only those of the model that config.json describes, found 'adapter.weight', "
                                   "'model.layers.0.mlp.gate_proj.bias', 'model.layers.2.input_layernorm.weight' and 1 more"));
}

TEST_F(CheckpointTest, TheFusedPackingOfAnotherFamilyIsNamed) {
  tensors_.emplace("model.layers.0.linear_attn.in_proj_qkvz.weight", filled(DType::kBf16, {24, 8}, 0));
  write_tensors("model.safetensors");
  EXPECT_THAT(failure(), AllOf(HasSubstr("in_proj_qkvz"), HasSubstr("the fused packing of Qwen3-Next is not supported")));
}

TEST_F(CheckpointTest, TwoNamesForOneTensorMustAgree) {
  tensors_.emplace("model.language_model.norm.weight", filled(DType::kBf16, {8}, 999));
  write_tensors("model.safetensors");
  EXPECT_THAT(failure(),
              HasSubstr("tensors 'model.language_model.norm.weight' and 'model.norm.weight' both mean norm.weight, expected equal data"));
  tensors_.at("model.language_model.norm.weight") = filled(DType::kBf16, {8}, 1);
  tensors_.at("model.norm.weight") = filled(DType::kBf16, {8}, 1);
  write_tensors("model.safetensors");
  EXPECT_EQ(total_tensors(opened(), TensorKind::kIgnored), 1u);
}

TEST_F(CheckpointTest, AHeadThatTheConfigTiesMayBeAbsent) {
  tensors_.erase("lm_head.weight");
  write_tensors("model.safetensors");
  EXPECT_THAT(failure(), HasSubstr("tensor lm_head.weight is missing: expected [16, 8]"));
  change_config("tie_word_embeddings", true);
  EXPECT_TRUE(opened().config().tie_word_embeddings);
}

TEST_F(CheckpointTest, AHeadInTheFilesWinsOverATyingConfig) {
  write_tensors("model.safetensors");
  change_config("tie_word_embeddings", true);
  const Checkpoint checkpoint = opened();
  EXPECT_FALSE(checkpoint.config().tie_word_embeddings);
  EXPECT_TRUE(checkpoint.has("lm_head.weight"));
}

TEST_F(CheckpointTest, WithoutMtpTensorsThereIsNoMtp) {
  std::erase_if(tensors_, [](const auto& entry) { return entry.first.starts_with("mtp."); });
  write_tensors("model.safetensors");
  const Checkpoint checkpoint = opened();
  EXPECT_FALSE(checkpoint.config().has_mtp);
  EXPECT_THAT(checkpoint.notes(), Contains(HasSubstr("no mtp.* tensors")));
}

TEST_F(CheckpointTest, EveryMtpTensorOrNone) {
  const Tensors all = [&] {
    Tensors copies;
    for (const auto& [name, tensor] : tensors_) copies.emplace(name, filled(tensor.dtype(), tensor.shape(), 1));
    return copies;
  }();
  for (const auto& entry : all) {
    if (!entry.first.starts_with("mtp.")) continue;
    Tensor removed = std::move(tensors_.at(entry.first));
    tensors_.erase(entry.first);
    write_tensors("model.safetensors");
    EXPECT_THAT(failure(), HasSubstr("tensor " + entry.first + " is missing"));
    tensors_.emplace(entry.first, std::move(removed));
  }
}

TEST_F(CheckpointTest, MtpTensorsThatTheConfigDeniesAreIgnoredWithANote) {
  write_tensors("model.safetensors");
  change_config("mtp_num_hidden_layers", 0);
  const Checkpoint checkpoint = opened();
  EXPECT_FALSE(checkpoint.config().has_mtp);
  EXPECT_FALSE(checkpoint.has("mtp.fc.weight"));
  EXPECT_EQ(total_tensors(checkpoint, TensorKind::kIgnored), 15u);
  EXPECT_THAT(checkpoint.notes(), Contains(HasSubstr("mtp_num_hidden_layers is 0")));
}

TEST_F(CheckpointTest, EveryPrefixOfPublishedExports) {
  for (const char* prefix :
       {"model.language_model.", "language_model.model.", "language_model.", "vlm.model.language_model.", "thinker.model."}) {
    std::vector<NamedTensor> renamed;
    for (const auto& [name, tensor] : tensors_) {
      renamed.push_back({name.starts_with("model.") ? prefix + name.substr(6) : name, tensor.view()});
    }
    ASSERT_TRUE(write_safetensors(path("model.safetensors"), renamed).ok());
    EXPECT_TRUE(opened().has("layers.0.linear_attn.A_log")) << prefix;
  }
}

}  // namespace
}  // namespace espalier
