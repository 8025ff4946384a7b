// "A row is a row" for the ops that remember: their output and state depend on a row's path, not on how the path came into passes. For
// tests only.
#pragma once

#include <string>
#include <vector>

#include "backend/batch_test_support.h"

namespace espalier::testing {

using RowBytes = std::string;

// An op with memory between passes. Row contents are fixed and named by an index; a pass says which content each of its rows has.
class PathOp {
 public:
  virtual ~PathOp() = default;
  virtual void reset() = 0;  // every sequence empty
  virtual std::vector<RowBytes> run(const TestBatch& batch, const std::vector<int32_t>& contents) = 0;
  virtual RowBytes state(int32_t slot) = 0;  // what a state slot holds; empty for an op without
  virtual std::vector<int32_t> pages(int32_t sequence) = 0;
};

struct RowLawCase {
  int32_t length = 37;    // of the committed chain
  int32_t nodes = 13;     // of the tree on top
  int32_t contents = 64;  // distinct row contents
  uint32_t seed = 1;
};

// Chunked = whole, batched = alone, a tree node = its path decoded token by token, a capture = the state at that point, and a tree
// leaves the state as it was. All in bytes. State slots 0 and 1 are two sequences, 2 a capture.
inline void expect_row_laws(PathOp& op, const RowLawCase& c) {
  SCOPED_TRACE("seed " + std::to_string(c.seed) + ", length " + std::to_string(c.length));
  Random random(c.seed);
  std::vector<int32_t> prompt, other;
  for (int32_t i = 0; i < c.length; ++i) prompt.push_back(random.below(c.contents));
  for (int32_t i = 0; i < 5; ++i) other.push_back(random.below(c.contents));

  const auto feed = [&](const std::vector<int32_t>& contents, int32_t begin, int32_t end, int32_t slot) {
    return op.run(TestBatch({{.parents = chain(end - begin), .base = begin, .state_slot = slot, .pages = op.pages(slot)}}),
                  {contents.begin() + begin, contents.begin() + end});
  };

  op.reset();
  const std::vector<RowBytes> whole = feed(prompt, 0, c.length, 0);
  const RowBytes state_after_prompt = op.state(0);

  op.reset();
  for (int32_t begin = 0; begin < c.length;) {
    const int32_t end = std::min(c.length, begin + 1 + random.below(std::max(2, c.length / 4)));
    const std::vector<RowBytes> chunk = feed(prompt, begin, end, 0);
    for (int32_t i = begin; i < end; ++i) {
      ASSERT_EQ(chunk[static_cast<size_t>(i - begin)], whole[static_cast<size_t>(i)])
          << "row " << i << " of a chunk from " << begin << " to " << end;
    }
    begin = end;
  }
  ASSERT_EQ(op.state(0), state_after_prompt) << "state after chunks";

  op.reset();
  const std::vector<RowBytes> other_alone = feed(other, 0, 5, 1);
  const RowBytes other_state = op.state(1);
  op.reset();
  const int32_t cut = random.below(c.length);
  std::vector<int32_t> both = other;
  both.insert(both.end(), prompt.begin(), prompt.end());
  const std::vector<RowBytes> together =
      op.run(TestBatch({{.parents = chain(5), .state_slot = 1, .pages = op.pages(1)},
                        {.parents = chain(c.length), .state_slot = 0, .pages = op.pages(0), .captures = {{cut, 2}}}}),
             both);
  for (size_t i = 0; i < together.size(); ++i)
    ASSERT_EQ(together[i], i < 5 ? other_alone[i] : whole[i - 5]) << "row " << i << " of a batch of two";
  ASSERT_EQ(op.state(0), state_after_prompt);
  ASSERT_EQ(op.state(1), other_state);
  const RowBytes captured = op.state(2);
  op.reset();
  feed(prompt, 0, cut + 1, 0);
  ASSERT_EQ(captured, op.state(0)) << "captured after row " << cut;

  const std::vector<int32_t> parents = random_tree(c.nodes, random);
  std::vector<int32_t> tree;
  for (int32_t i = 0; i < c.nodes; ++i) tree.push_back(random.below(c.contents));
  op.reset();
  feed(prompt, 0, c.length, 0);
  feed(other, 0, 4, 1);
  std::vector<int32_t> contents = {other[4]};
  contents.insert(contents.end(), tree.begin(), tree.end());
  const std::vector<RowBytes> nodes =
      op.run(TestBatch({{.parents = chain(1), .base = 4, .state_slot = 1, .pages = op.pages(1)},
                        {.parents = parents, .base = c.length, .state_slot = 0, .keep = Keep::kNone, .pages = op.pages(0)}}),
             contents);
  ASSERT_EQ(nodes[0], other_alone[4]) << "a decode step beside a tree";
  ASSERT_EQ(op.state(0), state_after_prompt) << "a tree to be judged must not touch its state";
  ASSERT_EQ(op.state(1), other_state);
  for (int32_t node = 0; node<c.nodes; node += c.length> 200 ? 5 : 1) {
    op.reset();
    feed(prompt, 0, c.length, 0);
    std::vector<int32_t> path_contents = prompt;
    for (const int32_t n : path_to(parents, node)) path_contents.push_back(tree[static_cast<size_t>(n)]);
    std::vector<RowBytes> last;
    for (int32_t i = c.length; i < static_cast<int32_t>(path_contents.size()); ++i) last = feed(path_contents, i, i + 1, 0);
    ASSERT_EQ(nodes[static_cast<size_t>(node) + 1], last[0]) << "node " << node;
  }
}

// Rows `rows` of x.
inline Tensor take_rows(const ConstTensorView& x, const std::vector<int32_t>& rows) {
  std::vector<int64_t> dims;
  for (int axis = 0; axis < x.shape.rank(); ++axis) dims.push_back(axis == 0 ? static_cast<int64_t>(rows.size()) : x.shape[axis]);
  Tensor taken(x.dtype, Shape(dims));
  for (size_t i = 0; i < rows.size(); ++i) {
    const ConstTensorView row = x.slice(rows[i], 1);
    std::memcpy(taken.view().slice(static_cast<int64_t>(i), 1).data, row.data, row.size_bytes());
  }
  return taken;
}

inline std::vector<RowBytes> split_rows(const ConstTensorView& x) {
  std::vector<RowBytes> rows;
  for (int64_t r = 0; r < x.rows(); ++r) {
    const ConstTensorView row = x.slice(r, 1);
    rows.emplace_back(static_cast<const char*>(row.data), row.size_bytes());
  }
  return rows;
}

}  // namespace espalier::testing
