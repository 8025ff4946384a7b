#include "checkpoint/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/format.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr auto kG = LayerKind::kLinearAttention;
constexpr auto kF = LayerKind::kFullAttention;

Json json(std::string_view text) {
  Result<Json> parsed = parse_json(text, "test");
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? std::move(parsed).value() : Json::object();
}

// A flat config with the members of `changes` over it.
Json flat(std::string_view changes = "{}") {
  Json config = json(
      R"({"architectures":["Qwen3_5ForCausalLM"],"model_type":"qwen3_5_text","hidden_size":64,
"num_hidden_layers":4,"vocab_size":512,"eos_token_id":7})");
  const Json changed = json(changes);
  for (const auto& [key, value] : changed.items()) config[key] = value;
  return config;
}

ModelConfig parsed(const Json& config, const Json* generation = nullptr) {
  const Result<ModelConfig> result = parse_model_config(config, generation, "m/config.json");
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? *result : ModelConfig{};
}

std::string failure(const Json& config, ErrorCode code, const Json* generation = nullptr) {
  const Result<ModelConfig> result = parse_model_config(config, generation, "m/config.json");
  EXPECT_FALSE(result.ok()) << dump_json(config);
  if (result.ok()) return "";
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_THAT(result.error().message, AllOf(StartsWith("m/"), Not(HasSubstr("\n"))));
  return result.error().message;
}

TEST(ModelConfig, NestedAndFlatSayTheSame) {
  Json text = flat(R"({"model_type":"qwen3_5_text","head_dim":128,"tie_word_embeddings":false})");
  text.erase("architectures");
  Json nested = json(R"({"architectures":["Qwen3_5ForConditionalGeneration"],"model_type":"qwen3_5","vision_config":{"depth":27}})");
  nested["text_config"] = text;
  const ModelConfig config = parsed(nested);
  EXPECT_EQ(config.architecture, "Qwen3_5ForConditionalGeneration");
  EXPECT_EQ(config.model_type, "qwen3_5_text");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_FALSE(config.tie_word_embeddings);
  const ModelConfig same = parsed(text);
  EXPECT_EQ(same.hidden_size, config.hidden_size);
  EXPECT_EQ(same.head_dim, config.head_dim);
  EXPECT_EQ(same.layer_kinds, config.layer_kinds);
}

TEST(ModelConfig, MissingFieldsTakeTheDefaultsOfTheClass) {
  const ModelConfig config = parsed(json(R"({"model_type":"qwen3_5_text"})"));
  EXPECT_EQ(config.vocab_rows, 248320);
  EXPECT_EQ(config.hidden_size, 4096);
  EXPECT_EQ(config.intermediate_size, 12288);
  EXPECT_EQ(config.num_layers, 32);
  EXPECT_EQ(config.num_heads, 16);
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.rotary_dim, 64);
  EXPECT_EQ(config.max_position_embeddings, 32768);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.rope_theta, 1e7);
  EXPECT_EQ(config.linear_num_key_heads, 16);
  EXPECT_EQ(config.linear_num_value_heads, 32);
  EXPECT_EQ(config.linear_key_head_dim, 128);
  EXPECT_EQ(config.linear_value_head_dim, 128);
  EXPECT_EQ(config.conv_kernel, 4);
  EXPECT_THAT(config.mrope_section, ElementsAre(11, 11, 10));
  EXPECT_EQ(config.num_full_layers(), 8);
  EXPECT_EQ(config.num_linear_layers(), 24);
  EXPECT_TRUE(config.stop_ids.empty());
}

TEST(ModelConfig, DerivedSizesOfThe27B) {
  const ModelConfig config = parsed(json(R"({"model_type":"qwen3_5_text","num_attention_heads":24,"linear_num_value_heads":48})"));
  EXPECT_EQ(config.query_dim(), 6144);
  EXPECT_EQ(config.kv_dim(), 1024);
  EXPECT_EQ(config.key_dim(), 2048);
  EXPECT_EQ(config.value_dim(), 6144);
  EXPECT_EQ(config.conv_dim(), 10240);
}

TEST(ModelConfig, ExplicitLayerTypesWinOverTheInterval) {
  const ModelConfig irregular = parsed(
      flat(R"({"full_attention_interval":2,"layer_types":["full_attention","linear_attention","linear_attention","full_attention"]})"));
  EXPECT_THAT(irregular.layer_kinds, ElementsAre(kF, kG, kG, kF));
  EXPECT_THAT(parsed(flat(R"({"full_attention_interval":2})")).layer_kinds, ElementsAre(kG, kF, kG, kF));
  EXPECT_THAT(parsed(flat()).layer_kinds, ElementsAre(kG, kG, kG, kF));
}

TEST(ModelConfig, OlderSpellingOfRope) {
  const ModelConfig config =
      parsed(flat(R"({"rope_theta":500000,"partial_rotary_factor":0.5,"rope_scaling":{"type":"mrope","mrope_section":[24,20,20]}})"));
  EXPECT_EQ(config.rope_theta, 500000);
  EXPECT_EQ(config.rotary_dim, 128);
  EXPECT_THAT(config.mrope_section, ElementsAre(24, 20, 20));
  EXPECT_EQ(parsed(flat(R"({"rope_theta":10000,"rope_scaling":null})")).rope_theta, 10000);
}

TEST(ModelConfig, RopeParametersWinOverTheOlderSpelling) {
  const ModelConfig config = parsed(flat(
      R"({"rope_theta":5,"partial_rotary_factor":1.0,"rope_parameters":{"rope_type":"default",
"rope_theta":1000000,"partial_rotary_factor":0.25}})"));
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.rotary_dim, 64);
}

TEST(ModelConfig, StopIdsAreTheUnionOfAllThatNameOne) {
  Json nested = json(R"({"model_type":"qwen3_5","eos_token_id":[9,3]})");
  nested["text_config"] = flat();
  const Json generation = json(R"({"eos_token_id":[11,7]})");
  EXPECT_THAT(parsed(nested, &generation).stop_ids, ElementsAre(3, 7, 9, 11));
  const Json one = json(R"({"eos_token_id":5})");
  EXPECT_THAT(parsed(flat(), &one).stop_ids, ElementsAre(5, 7));
  const Json none = json(R"({"eos_token_id":null})");
  EXPECT_THAT(parsed(flat(), &none).stop_ids, ElementsAre(7));
}

TEST(ModelConfig, StopIdsLieInTheVocabulary) {
  const Json generation = json(R"({"eos_token_id":[512]})");
  EXPECT_THAT(failure(flat(), ErrorCode::kCorrupt, &generation),
              AllOf(StartsWith("m/generation_config.json: 'eos_token_id'"), HasSubstr("512 vocabulary rows, found 512")));
  const Json list = json("[1]");
  EXPECT_THAT(failure(flat(), ErrorCode::kCorrupt, &list), StartsWith("m/generation_config.json: expected an object"));
}

TEST(ModelConfig, TiesWhereEitherLevelSaysSoOrNeitherSpeaks) {
  Json nested = json(R"({"model_type":"qwen3_5","tie_word_embeddings":true})");
  nested["text_config"] = flat(R"({"tie_word_embeddings":false})");
  EXPECT_TRUE(parsed(nested).tie_word_embeddings);
  EXPECT_TRUE(parsed(flat()).tie_word_embeddings);
  EXPECT_FALSE(parsed(flat(R"({"tie_word_embeddings":false})")).tie_word_embeddings);
}

TEST(ModelConfig, MtpLayers) {
  EXPECT_TRUE(parsed(flat(R"({"mtp_num_hidden_layers":1})")).has_mtp);
  EXPECT_FALSE(parsed(flat(R"({"mtp_num_hidden_layers":0})")).has_mtp);
}

struct Case {
  const char* name;
  const char* changes;
  ErrorCode code;
  const char* expected;
};

class RefusedConfig : public ::testing::TestWithParam<Case> {};

TEST_P(RefusedConfig, ByName) { EXPECT_THAT(failure(flat(GetParam().changes), GetParam().code), HasSubstr(GetParam().expected)); }

const auto kCaseName = [](const auto& tested) { return tested.param.name; };

INSTANTIATE_TEST_SUITE_P(
    Unsupported, RefusedConfig,
    ::testing::Values(
        Case{"moe_type", R"({"model_type":"qwen3_5_moe_text"})", ErrorCode::kUnsupported,
             "mixture-of-experts models are not supported yet: model_type \"qwen3_5_moe_text\""},
        Case{"experts", R"({"num_experts":256})", ErrorCode::kUnsupported,
             "mixture-of-experts models are not supported yet: 'num_experts' 256"},
        Case{"other_model", R"({"model_type":"llama"})", ErrorCode::kUnsupported,
             "expected model_type \"qwen3_5\" or \"qwen3_5_text\", found \"llama\""},
        Case{"yarn", R"({"rope_parameters":{"rope_type":"yarn","factor":4.0}})", ErrorCode::kUnsupported,
             "rope_type \"yarn\" is not supported"},
        Case{"old_yarn", R"({"rope_scaling":{"type":"yarn","factor":4.0}})", ErrorCode::kUnsupported, "rope_scaling: rope_type \"yarn\""},
        Case{"not_interleaved", R"({"rope_parameters":{"mrope_interleaved":false}})", ErrorCode::kUnsupported, "'mrope_interleaved' false"},
        Case{"activation", R"({"hidden_act":"gelu"})", ErrorCode::kUnsupported,
             "'hidden_act' \"gelu\" is not supported, expected \"silu\""},
        Case{"gate_activation", R"({"output_gate_type":"sigmoid"})", ErrorCode::kUnsupported, "'output_gate_type' \"sigmoid\""},
        Case{"bias", R"({"attention_bias":true})", ErrorCode::kUnsupported, "'attention_bias' true is not supported, expected false"},
        Case{"no_gate", R"({"attn_output_gate":false})", ErrorCode::kUnsupported,
             "'attn_output_gate' false is not supported, expected true"},
        Case{"layer_type", R"({"layer_types":["linear_attention","sliding_attention","linear_attention","full_attention"]})",
             ErrorCode::kUnsupported, "layer_types[1] must be"},
        Case{"two_mtp_layers", R"({"mtp_num_hidden_layers":2})", ErrorCode::kUnsupported, "'mtp_num_hidden_layers' 2 is not supported"},
        Case{"mtp_embeddings", R"({"mtp_use_dedicated_embeddings":true})", ErrorCode::kUnsupported, "'mtp_use_dedicated_embeddings' true"},
        Case{"modelopt", R"({"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4"}})", ErrorCode::kUnsupported,
             "quantised checkpoints are not supported yet: quant_method \"modelopt NVFP4\""},
        Case{"compressed_tensors", R"({"quantization_config":{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized"}})",
             ErrorCode::kUnsupported, "compressed-tensors nvfp4-pack-quantized"}),
    kCaseName);

INSTANTIATE_TEST_SUITE_P(
    Contradictory, RefusedConfig,
    ::testing::Values(
        Case{"zero", R"({"hidden_size":0})", ErrorCode::kCorrupt, "'hidden_size' must be an integer from 1 to 131072, found 0"},
        Case{"negative", R"({"num_attention_heads":-8})", ErrorCode::kCorrupt,
             "'num_attention_heads' must be an integer from 1 to 4096, found -8"},
        Case{"fraction", R"({"head_dim":25.5})", ErrorCode::kCorrupt, "'head_dim' must be an integer from 2 to 1024, found 25.5"},
        Case{"text", R"({"vocab_size":"512"})", ErrorCode::kCorrupt, "'vocab_size' must be an integer from 1 to 16777216, found \"512\""},
        Case{"overflow", R"({"intermediate_size":18446744073709551615})", ErrorCode::kCorrupt, "found 18446744073709551615"},
        Case{"absurd_layers", R"({"num_hidden_layers":1000000000})", ErrorCode::kCorrupt,
             "'num_hidden_layers' must be an integer from 1 to 1024"},
        Case{"kv_heads", R"({"num_attention_heads":8,"num_key_value_heads":3})", ErrorCode::kCorrupt,
             "num_attention_heads 8 must be a multiple of num_key_value_heads 3"},
        Case{"value_heads", R"({"linear_num_key_heads":3,"linear_num_value_heads":4})", ErrorCode::kCorrupt,
             "linear_num_value_heads 4 must be a multiple of linear_num_key_heads 3"},
        Case{"too_few_layer_types", R"({"layer_types":["full_attention"]})", ErrorCode::kCorrupt,
             "'layer_types' must list num_hidden_layers = 4 layers, found 1"},
        Case{"layer_types_text", R"({"layer_types":"full_attention"})", ErrorCode::kCorrupt, "found \"full_attention\""},
        Case{"interval", R"({"full_attention_interval":0})", ErrorCode::kCorrupt, "'full_attention_interval' must be an integer from 1"},
        Case{"epsilon", R"({"rms_norm_eps":0})", ErrorCode::kCorrupt, "'rms_norm_eps' must be a number from"},
        Case{"theta", R"({"rope_theta":-1})", ErrorCode::kCorrupt, "'rope_theta' must be a number from"},
        Case{"rope_list", R"({"rope_parameters":[1]})", ErrorCode::kCorrupt, "'rope_parameters' must be an object, found [1]"},
        Case{"odd_rotary", R"({"head_dim":36,"partial_rotary_factor":0.25})", ErrorCode::kCorrupt,
             "must be a positive even number of dimensions, found 9"},
        Case{"no_rotary", R"({"partial_rotary_factor":0})", ErrorCode::kCorrupt, "must be a positive even number of dimensions, found 0"},
        Case{"sections", R"({"rope_parameters":{"mrope_section":[11,11,11]}})", ErrorCode::kCorrupt,
             "add up to 32 rotated pairs, found [11,11,11]"},
        Case{"section_count", R"({"rope_parameters":{"mrope_section":[16,16]}})", ErrorCode::kCorrupt, "found [16,16]"},
        Case{"kernel", R"({"linear_conv_kernel_dim":1})", ErrorCode::kCorrupt,
             "'linear_conv_kernel_dim' must be an integer from 2 to 16, found 1"},
        Case{"bias_text", R"({"attention_bias":"no"})", ErrorCode::kCorrupt, "'attention_bias' must be true or false"},
        Case{"activation_number", R"({"hidden_act":3})", ErrorCode::kCorrupt, "'hidden_act' must be a string"},
        Case{"architectures", R"({"architectures":"Qwen3_5ForCausalLM"})", ErrorCode::kCorrupt, "'architectures' must be a list of names"},
        Case{"eos_text", R"({"eos_token_id":"<|im_end|>"})", ErrorCode::kCorrupt, "'eos_token_id' must hold token ids"},
        Case{"eos_negative", R"({"eos_token_id":[-1]})", ErrorCode::kCorrupt, "found -1"}),
    kCaseName);

TEST(ModelConfig, WhatIsNoConfig) {
  EXPECT_THAT(failure(json("[]"), ErrorCode::kCorrupt), HasSubstr("expected an object, found []"));
  EXPECT_THAT(failure(json("{}"), ErrorCode::kCorrupt), HasSubstr("'model_type' is missing"));
  EXPECT_THAT(failure(json(R"({"model_type":"qwen3_5","text_config":[]})"), ErrorCode::kCorrupt),
              HasSubstr("'text_config' must be an object"));
  EXPECT_THAT(failure(json(R"({"model_type":"qwen3_5","text_config":{"model_type":"mamba"}})"), ErrorCode::kUnsupported),
              HasSubstr("m/config.json: text_config: expected model_type"));
}

}  // namespace
}  // namespace espalier
