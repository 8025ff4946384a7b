#include "checkpoint/model_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace espalier {
namespace {

// Qwen3.6-27B: sizes and counts from the published files.
ModelConfig config_27b() {
  ModelConfig config;
  config.hidden_size = 5120;
  config.intermediate_size = 17408;
  config.num_layers = 64;
  for (int i = 0; i < 64; ++i) config.layer_kinds.push_back(i % 4 == 3 ? LayerKind::kFullAttention : LayerKind::kLinearAttention);
  config.vocab_rows = 248320;
  config.num_heads = 24;
  config.num_kv_heads = 4;
  config.head_dim = 256;
  config.linear_num_key_heads = 16;
  config.linear_num_value_heads = 48;
  config.linear_key_head_dim = 128;
  config.linear_value_head_dim = 128;
  config.conv_kernel = 4;
  return config;
}

std::map<std::string, Shape> shapes(const std::vector<TensorSpec>& specs) {
  std::map<std::string, Shape> by_name;
  for (const TensorSpec& spec : specs) EXPECT_TRUE(by_name.emplace(spec.name, spec.shape).second) << spec.name;
  return by_name;
}

TEST(ModelTensors, ThePublished27BHas851TrunkTensorsAnd15OfMtp) {
  const auto trunk = shapes(trunk_tensors(config_27b()));
  EXPECT_EQ(trunk.size(), 851u);
  EXPECT_EQ(trunk.at("lm_head.weight"), (Shape{248320, 5120}));
  EXPECT_EQ(trunk.at("layers.3.self_attn.q_proj.weight"), (Shape{12288, 5120}));
  EXPECT_EQ(trunk.at("layers.3.self_attn.v_proj.weight"), (Shape{1024, 5120}));
  EXPECT_EQ(trunk.at("layers.3.self_attn.o_proj.weight"), (Shape{5120, 6144}));
  EXPECT_EQ(trunk.at("layers.0.linear_attn.in_proj_qkv.weight"), (Shape{10240, 5120}));
  EXPECT_EQ(trunk.at("layers.0.linear_attn.conv1d.weight"), (Shape{10240, 1, 4}));
  EXPECT_EQ(trunk.at("layers.0.linear_attn.A_log"), (Shape{48}));
  EXPECT_EQ(trunk.at("layers.0.linear_attn.norm.weight"), (Shape{128}));
  EXPECT_EQ(trunk.at("layers.63.mlp.down_proj.weight"), (Shape{5120, 17408}));
  const auto mtp = shapes(mtp_tensors(config_27b()));
  EXPECT_EQ(mtp.size(), 15u);
  EXPECT_EQ(mtp.at("mtp.fc.weight"), (Shape{5120, 10240}));
}

TEST(ModelTensors, ThePublished27BHas26900MillionTrunkParameters) {
  int64_t parameters = 0;
  for (const TensorSpec& spec : trunk_tensors(config_27b())) parameters += spec.shape.num_elements();
  EXPECT_NEAR(static_cast<double>(parameters), 26.90e9, 0.01e9);
}

TEST(ModelTensors, ATiedModelHasNoHead) {
  ModelConfig config = config_27b();
  config.tie_word_embeddings = true;
  EXPECT_EQ(shapes(trunk_tensors(config)).count("lm_head.weight"), 0u);
}

TEST(CanonicalTensorName, EveryPublishedPrefix) {
  for (const char* prefix :
       {"model.language_model.", "model.", "language_model.model.", "language_model.", "vlm.model.language_model.", "thinker.model."}) {
    EXPECT_EQ(canonical_tensor_name(std::string(prefix) + "layers.3.mlp.up_proj.weight"), "layers.3.mlp.up_proj.weight") << prefix;
    EXPECT_EQ(canonical_tensor_name(std::string(prefix) + "embed_tokens.weight"), "embed_tokens.weight") << prefix;
    EXPECT_EQ(canonical_tensor_name(std::string(prefix) + "norm.weight"), "norm.weight") << prefix;
  }
  EXPECT_EQ(canonical_tensor_name("lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(canonical_tensor_name("language_model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(canonical_tensor_name("mtp.layers.0.self_attn.q_proj.weight"), "mtp.layers.0.self_attn.q_proj.weight");
}

TEST(CanonicalTensorName, OtherNamesHaveNone) {
  for (const char* name : {"", "model.", "layers.0.mlp.up_proj.weight", "model.foo.weight", "other.model.norm.weight",
                           "model.mtp.fc.weight", "model.visual.norm.weight"}) {
    EXPECT_EQ(canonical_tensor_name(name), std::nullopt) << name;
  }
}

TEST(TensorNames, VisionAndIgnorable) {
  EXPECT_TRUE(is_vision_tensor("model.visual.blocks.0.attn.qkv.weight"));
  EXPECT_TRUE(is_vision_tensor("visual.patch_embed.proj.weight"));
  EXPECT_FALSE(is_vision_tensor("model.layers.0.visual.weight"));
  EXPECT_TRUE(is_ignorable_tensor("model.layers.0.self_attn.rotary_emb.inv_freq"));
  EXPECT_TRUE(is_ignorable_tensor("model.layers.3.self_attn.k_proj.k_scale"));
  EXPECT_TRUE(is_ignorable_tensor("mtp.lm_head.weight"));
  EXPECT_FALSE(is_ignorable_tensor("model.layers.0.mlp.up_proj.weight"));
}

}  // namespace
}  // namespace espalier
