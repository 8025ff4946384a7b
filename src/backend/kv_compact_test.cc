#include "ops/kv_compact.h"

#include "backend/attention_test_support.h"

namespace espalier::testing {
namespace {

class KvCompactTest : public OpTest {};

TEST_P(KvCompactTest, AfterCompactionThePathIsAsIfDecoded) {
  Random random(21);
  for (const DType kv_dtype : kv_dtypes()) {
    for (const int32_t base : {0, 1, 55, 62, 70}) {
      GatedAttentionPair pair(*backend_, {.num_heads = 6, .num_kv_heads = 3, .head_dim = 64, .kv_dtype = kv_dtype}, random);
      std::vector<int32_t> prompt, tree;
      for (int32_t i = 0; i < base; ++i) prompt.push_back(random.below(64));
      for (int32_t i = 0; i < 16; ++i) tree.push_back(random.below(64));
      const std::vector<int32_t> parents = random_tree(16, random);
      const std::vector<int32_t> path = path_to(parents, 11 + random.below(5));

      std::vector<int32_t> decoded = prompt;
      for (const int32_t node : path) decoded.push_back(tree[static_cast<size_t>(node)]);
      const auto end = static_cast<int32_t>(decoded.size());
      const auto next = [&] { return pair.output(TestBatch({{.parents = {-1}, .base = end, .pages = pair.pages(0)}}), {7}); };
      pair.write(TestBatch({{.parents = chain(end), .pages = pair.pages(0)}}), decoded);
      const Tensor sequential = next();

      pair.reset();
      if (base > 0) pair.write(TestBatch({{.parents = chain(base), .pages = pair.pages(0)}}), prompt);
      pair.write(TestBatch({{.parents = parents, .base = base, .keep = Keep::kNone, .pages = pair.pages(0)}}), tree);
      std::vector<int32_t> from, to;
      for (size_t i = 0; i < path.size(); ++i) {
        from.push_back(base + path[i]);
        to.push_back(base + static_cast<int32_t>(i));
      }
      const std::vector<int32_t> pages = pair.pages(0);
      ops().kv_compact(
          {.kv = pair.kv(), .page_table = pages.data(), .from = from.data(), .to = to.data(), .count = static_cast<int32_t>(from.size())});
      ASSERT_TRUE(bytes_equal(next().view(), sequential.view())) << "base " << base << ", " << dtype_name(kv_dtype);
    }
  }
}

ESPALIER_ON_ALL_BACKENDS(KvCompactTest);

}  // namespace
}  // namespace espalier::testing
