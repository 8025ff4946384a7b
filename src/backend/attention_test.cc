#include "ops/attention.h"

#include "backend/attention_test_support.h"

namespace espalier::testing {
namespace {

class AttentionTest : public OpTest {
 protected:
  // Softmax weights may be rounded to the activation dtype before they meet the values (below 1), q and k near a tie to their stored one.
  double error(DType kv_dtype) const { return activation() == DType::kF32 ? (kv_dtype == DType::kF32 ? 5e-6 : 2e-3) : 0x1p-7; }
};

TEST_P(AttentionTest, IsTheSoftmaxOverEachPath) {
  Random random(19);
  for (const DType kv_dtype : kv_dtypes()) {
    for (const int32_t head_dim : {64, 128, 256}) {
      for (const int32_t ratio : {1, 2, 3, 4, 6}) {
        GatedAttentionPair pair(*backend_, {.num_heads = 2 * ratio, .num_kv_heads = 2, .head_dim = head_dim, .kv_dtype = kv_dtype}, random);
        const int32_t base = random.below(3) == 0 ? 0 : 50 + random.below(30);
        std::vector<int32_t> prompt, tree;
        for (int32_t i = 0; i < base; ++i) prompt.push_back(random.below(64));
        for (int32_t i = 0; i < 7; ++i) tree.push_back(random.below(64));
        const std::vector<int32_t> parents = random_tree(7, random);
        if (base > 0) pair.write(TestBatch({{.parents = chain(base), .pages = pair.pages(0)}}), prompt);
        const Tensor y = pair.output(TestBatch({{.parents = parents, .base = base, .keep = Keep::kNone, .pages = pair.pages(0)}}), tree);
        for (int32_t node = 0; node < 7; ++node) {
          std::vector<int32_t> path = prompt;
          for (const int32_t n : path_to(parents, node)) path.push_back(tree[static_cast<size_t>(n)]);
          expect_close(y.view().slice(node, 1), pair.expected(path), error(kv_dtype));
          if (HasFatalFailure())
            FAIL() << "node " << node << ", base " << base << ", head_dim " << head_dim << ", ratio " << ratio << ", "
                   << dtype_name(kv_dtype);
        }
      }
    }
  }
}

TEST_P(AttentionTest, AFirstRowIsItsOwnValue) {
  Random random(20);
  GatedAttentionPair pair(*backend_, {.kv_dtype = backend_->default_kv_dtype()}, random);
  expect_close(pair.output(TestBatch({{.parents = {-1}, .pages = pair.pages(0)}}), {5}).view(), pair.expected({5}),
               error(backend_->default_kv_dtype()));
}

TEST_P(AttentionTest, ARowIsARow) {
  for (const DType kv_dtype : kv_dtypes()) {
    for (const uint32_t seed : {1u, 2u}) {
      Random random(seed);
      GatedAttentionPair pair(
          *backend_, {.num_heads = 6, .num_kv_heads = 2, .head_dim = 64, .page_size = seed == 1 ? 64 : 128, .kv_dtype = kv_dtype}, random);
      expect_row_laws(pair, {.length = 120, .seed = seed});
    }
  }
}

TEST_P(AttentionTest, ARowIsARowAcrossSpans) {
  Random random(3);
  GatedAttentionPair pair(
      *backend_,
      {.num_heads = 2, .num_kv_heads = 1, .head_dim = 64, .kv_dtype = backend_->default_kv_dtype(), .max_slots = kAttentionSpan + 80},
      random);
  expect_row_laws(pair, {.length = kAttentionSpan - 4, .seed = 3});
}

ESPALIER_ON_ALL_BACKENDS(AttentionTest);

}  // namespace
}  // namespace espalier::testing
