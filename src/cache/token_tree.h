// A radix tree of token runs: every common prefix is stored once. Nodes lie where snapshots end and where stored prompts part. Look-up
// is linear in the prompt. No recursion: a conversation of thousands of turns is a path of thousands of nodes. Engine thread only.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace espalier {

struct Snapshot;

struct TokenNode {
  std::vector<TokenId> run;  // tokens from the parent's end to this node's; empty for the root only
  size_t depth = 0;          // tokens from the root to this node's end
  TokenNode* parent = nullptr;
  std::map<TokenId, std::unique_ptr<TokenNode>> children;  // by first token; ordered, so that listings are stable
  Snapshot* snapshot = nullptr;                            // of exactly `depth` tokens
};

class TokenTree {
 public:
  TokenTree() : root_(std::make_unique<TokenNode>()) {}
  ~TokenTree();
  TokenTree(TokenTree&&) noexcept = default;
  TokenTree& operator=(TokenTree&&) = delete;

  struct Walk {
    std::vector<const TokenNode*> nodes;  // nodes whose whole prefix the prompt begins with, root excluded, shallow first
    size_t num_known = 0;                 // tokens of the prompt that lie in the tree
    bool goes_on = false;                 // stored text continues behind them
  };
  Walk walk(std::span<const TokenId> prompt) const;

  // The node of exactly `tokens` (not empty), made by splitting runs as needed.
  TokenNode& insert(std::span<const TokenId> tokens);
  // Call when a node has lost its snapshot: removes what no snapshot needs any more.
  void prune(TokenNode& node);

  // Another snapshot that shares a prefix with this node's tokens, and how many tokens they share at least; {null, 0} if none.
  struct Relative {
    const Snapshot* snapshot = nullptr;
    size_t num_shared = 0;
  };
  static Relative relative(const TokenNode& node);
  static const Snapshot* nearest_ancestor(const TokenNode& node);  // the longest snapshot that is a proper prefix, or null
  static std::vector<TokenId> tokens(const TokenNode& node);       // from the root

  std::vector<const TokenNode*> nodes() const;  // parents before children, root excluded
  size_t num_tokens() const { return num_tokens_; }

 private:
  std::unique_ptr<TokenNode> root_;
  size_t num_tokens_ = 0;  // in all runs
};

}  // namespace espalier
