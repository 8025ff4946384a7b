// The published layouts as other programs wrote them: opened where this build supports them, refused by name where not.
#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/oracle.h"
#include "tests/support/tiny_checkpoint.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::shared_path;

Checkpoint opened(const std::string& directory) {
  Result<Checkpoint> checkpoint = Checkpoint::open(directory);
  if (!checkpoint.ok()) ADD_FAILURE() << checkpoint.error().message;
  return std::move(checkpoint).value();
}

InventoryEntry entry(const Checkpoint& checkpoint, TensorKind kind) {
  for (const InventoryEntry& found : checkpoint.inventory()) {
    if (found.kind == kind) return found;
  }
  return {kind, 0, 0};
}

TEST(Checkpoint, TinyHybridInTheMultimodalWrapper) {
  ESPALIER_REQUIRE_SHARED();
  const Checkpoint checkpoint = opened(shared_path("oracle/tiny-hybrid"));
  const ModelConfig& config = checkpoint.config();
  EXPECT_EQ(config.architecture, "Qwen3_5ForConditionalGeneration");
  EXPECT_EQ(config.hidden_size, 128);
  EXPECT_EQ(config.intermediate_size, 384);
  EXPECT_EQ(config.vocab_rows, 512);
  EXPECT_EQ(config.num_heads, 4);
  EXPECT_EQ(config.num_kv_heads, 1);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.rotary_dim, 64);
  EXPECT_EQ(config.linear_num_value_heads, 4);
  EXPECT_EQ(config.num_full_layers(), 1);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_TRUE(config.has_mtp);
  EXPECT_THAT(config.stop_ids, ElementsAre(447, 449));
  EXPECT_THAT(checkpoint.notes(), IsEmpty());
  EXPECT_EQ(entry(checkpoint, TensorKind::kVisionSkipped).num_tensors, 3);
  EXPECT_EQ(entry(checkpoint, TensorKind::kMtp).num_tensors, 15);
  const Result<ConstTensorView> q = checkpoint.tensor("layers.3.self_attn.q_proj.weight");
  ASSERT_TRUE(q.ok()) << q.error().message;
  EXPECT_EQ(q->shape, (Shape{2048, 128}));
  EXPECT_EQ(q->dtype, DType::kBf16);
}

// The index states the sum of all data: an independent count of what was read.
TEST(Checkpoint, InventoryAddsUpToTheIndexTotal) {
  ESPALIER_REQUIRE_SHARED();
  for (const char* model : {"oracle/tiny-hybrid", "oracle/tiny-tied"}) {
    const std::string directory = shared_path(model);
    const Result<Json> index = load_json(directory + "/model.safetensors.index.json");
    ASSERT_TRUE(index.ok()) << index.error().message;
    const Checkpoint checkpoint = opened(directory);
    size_t total = 0;
    int64_t count = 0;
    for (const InventoryEntry& part : checkpoint.inventory()) {
      total += part.size_bytes;
      count += part.num_tensors;
    }
    EXPECT_EQ(total, (*index)["metadata"]["total_size"].get<size_t>()) << model;
    EXPECT_EQ(static_cast<size_t>(count), (*index)["weight_map"].size()) << model;
  }
}

TEST(Checkpoint, TinyTiedIsATextExportWithoutHeadAndMtp) {
  ESPALIER_REQUIRE_SHARED();
  const Checkpoint checkpoint = opened(shared_path("oracle/tiny-tied"));
  const ModelConfig& config = checkpoint.config();
  constexpr auto kG = LayerKind::kLinearAttention;
  constexpr auto kF = LayerKind::kFullAttention;
  EXPECT_THAT(config.layer_kinds, ElementsAre(kG, kF, kG, kG, kG, kF, kF, kG));
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.num_mtp_layers, 1);
  EXPECT_FALSE(config.has_mtp);
  EXPECT_THAT(checkpoint.notes(), Contains(HasSubstr("no mtp.* tensors")));
  EXPECT_FALSE(checkpoint.has("lm_head.weight"));
  EXPECT_EQ(checkpoint.tensor("layers.0.linear_attn.conv1d.weight")->shape, (Shape{1280, 1, 4}));
}

TEST(Checkpoint, TheDefaultModel) {
  const Checkpoint checkpoint = opened(std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano");
  EXPECT_EQ(checkpoint.config().hidden_size, 256);
  EXPECT_EQ(checkpoint.config().num_full_layers(), 2);
  EXPECT_TRUE(checkpoint.config().tie_word_embeddings);
  EXPECT_TRUE(checkpoint.config().has_mtp);
  EXPECT_THAT(checkpoint.config().stop_ids, ElementsAre(8129, 8131));
  EXPECT_THAT(checkpoint.notes(), IsEmpty());
}

TEST(Checkpoint, WhatTheGeneratorWritesOpens) {
  const testing::TemporaryDirectory directory;
  const std::string out = directory.path() + "/model";
  const std::string command = "python3 -B '" ESPALIER_SOURCE_DIR "/tools/make_random_checkpoint.py' '" + out +
                              "' --vocab 8192 --shard-bytes 1000000 --tokenizer '" ESPALIER_SOURCE_DIR "/models/espalier-nano'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const Checkpoint checkpoint = opened(out);
  EXPECT_TRUE(checkpoint.config().has_mtp);
  EXPECT_TRUE(checkpoint.config().tie_word_embeddings);
  EXPECT_EQ(checkpoint.config().vocab_rows, 8192);
  EXPECT_THAT(checkpoint.config().stop_ids, ElementsAre(8129, 8131));
  EXPECT_THAT(checkpoint.notes(), IsEmpty());
}

struct QuantisedLayout {
  const char* directory;
  const char* expected;
};

class QuantisedCheckpoint : public ::testing::TestWithParam<QuantisedLayout> {};

TEST_P(QuantisedCheckpoint, IsRefusedByTheNameOfItsMethod) {
  ESPALIER_REQUIRE_SHARED();
  const Result<Checkpoint> checkpoint = Checkpoint::open(shared_path(std::string("oracle/quant/") + GetParam().directory));
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_EQ(checkpoint.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(checkpoint.error().message, AllOf(HasSubstr("config.json: quantised checkpoints are not supported yet: quant_method"),
                                                HasSubstr(GetParam().expected), Not(HasSubstr("\n"))));
}

INSTANTIATE_TEST_SUITE_P(Layouts, QuantisedCheckpoint,
                         ::testing::Values(QuantisedLayout{"nvfp4-w4a4", "modelopt NVFP4"},
                                           QuantisedLayout{"nvfp4-w4a16", "modelopt W4A16_NVFP4"}, QuantisedLayout{"fp8", "modelopt FP8"},
                                           QuantisedLayout{"mixed", "modelopt MIXED_PRECISION"}, QuantisedLayout{"fp8-block", "fp8 e4m3"},
                                           QuantisedLayout{"nvfp4-ct", "compressed-tensors nvfp4-pack-quantized"},
                                           QuantisedLayout{"mixed-ct", "compressed-tensors mixed-precision"}),
                         [](const auto& layout) {
                           std::string name = layout.param.directory;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(TinyCheckpoint, EveryShapeOpensAndTheSeedDecidesTheBytes) {
  testing::TinyCheckpointSpec spec;
  spec.tied = true;
  spec.mtp = false;
  spec.layer_kinds = {LayerKind::kFullAttention, LayerKind::kLinearAttention};
  const testing::TemporaryDirectory a = testing::make_tiny_checkpoint(spec);
  const testing::TemporaryDirectory b = testing::make_tiny_checkpoint(spec);
  spec.seed = 2;
  const testing::TemporaryDirectory c = testing::make_tiny_checkpoint(spec);
  const auto weights = [](const testing::TemporaryDirectory& directory) {
    return *read_file(directory.path() + "/model.safetensors", size_t{1} << 30);
  };
  EXPECT_EQ(weights(a), weights(b));
  EXPECT_NE(weights(a), weights(c));
  const Checkpoint checkpoint = opened(a.path());
  EXPECT_THAT(checkpoint.config().layer_kinds, ElementsAre(LayerKind::kFullAttention, LayerKind::kLinearAttention));
  EXPECT_TRUE(checkpoint.config().tie_word_embeddings);
  EXPECT_FALSE(checkpoint.config().has_mtp);
  EXPECT_THAT(checkpoint.notes(), IsEmpty());

  const testing::TemporaryDirectory usual = testing::make_tiny_checkpoint({});
  EXPECT_TRUE(opened(usual.path()).config().has_mtp);
  EXPECT_TRUE(opened(usual.path()).has("lm_head.weight"));
}

}  // namespace
}  // namespace espalier
