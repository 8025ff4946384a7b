// How many prompt tokens of a workload a cache could serve at best: what a measured hot share is to be compared with. Prompts are given in
// the order of their arrival; they are kept as a tree of shared prefixes, so that memory follows the distinct tokens (each history is
// stored once) and time the tokens of all prompts. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace espalier {

struct CeilingPrompt {
  std::span<const TokenId> ids;
  // Where a cache may keep a state while it computes this prompt: numbers of leading tokens, ascending, each in [1, ids.size()]. For the
  // cache of this project: the end of the tools-and-system block and the end of the prompt without its unstable tail.
  std::span<const int64_t> snapshots;
};

struct PromptCeiling {
  int64_t perfect = 0;   // longest prefix shared with any earlier prompt: no cache that is exact can serve more
  int64_t snapshot = 0;  // longest prefix at which an earlier prompt kept a state
};

struct CeilingTotals {
  int64_t prompts = 0;
  int64_t prompt_tokens = 0;
  int64_t perfect = 0;
  int64_t snapshot = 0;
};

class PrefixCeiling {
 public:
  PrefixCeiling() : nodes_(1) {}

  // What the earlier prompts could serve of this one, which is then one of them. At least the last token is always computed.
  PromptCeiling add(const CeilingPrompt& prompt);

  const CeilingTotals& totals() const { return totals_; }
  // Distinct tokens kept.
  int64_t tree_tokens() const { return tree_tokens_; }

 private:
  struct Node {
    std::vector<TokenId> label;  // tokens between the parent's end and this node's
    std::map<TokenId, uint32_t> children;
    bool snapshot = false;
  };

  PromptCeiling match(std::span<const TokenId> ids) const;
  // Goes from the end of `node` along `ids`, makes what is missing, and returns the node that ends with them.
  uint32_t extend(uint32_t node, std::span<const TokenId> ids);
  void split(uint32_t node, size_t label_size);

  std::vector<Node> nodes_;  // the first is the root, with an empty label
  CeilingTotals totals_;
  int64_t tree_tokens_ = 0;
};

}  // namespace espalier
