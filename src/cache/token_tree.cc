#include "cache/token_tree.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace espalier {
namespace {

size_t common_length(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [end, ignored] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(end - a.begin());
}

const Snapshot* first_snapshot_below(const TokenNode& top) {
  const TokenNode* node = &top;
  while (node->snapshot == nullptr) node = node->children.begin()->second.get();  // a leaf always has one
  return node->snapshot;
}

}  // namespace

TokenTree::~TokenTree() {
  TokenNode* node = root_.get();
  while (node != nullptr) {  // leaf by leaf: neither recursion nor memory
    if (!node->children.empty()) {
      node = node->children.begin()->second.get();
      continue;
    }
    node = node->parent;
    if (node != nullptr) node->children.erase(node->children.begin());
  }
}

TokenTree::Walk TokenTree::walk(std::span<const TokenId> prompt) const {
  Walk walk;
  const TokenNode* node = root_.get();
  while (walk.num_known < prompt.size()) {
    const auto next = node->children.find(prompt[walk.num_known]);
    if (next == node->children.end()) break;
    const TokenNode& child = *next->second;
    walk.num_known += common_length(child.run, prompt.subspan(walk.num_known));
    if (walk.num_known < child.depth) {
      walk.goes_on = true;
      return walk;
    }
    walk.nodes.push_back(&child);
    node = &child;
  }
  walk.goes_on = !node->children.empty();
  return walk;
}

TokenNode& TokenTree::insert(std::span<const TokenId> tokens) {
  ESPALIER_CHECK(!tokens.empty());
  TokenNode* node = root_.get();
  while (node->depth < tokens.size()) {
    const std::span<const TokenId> rest = tokens.subspan(node->depth);
    const auto known = node->children.find(rest.front());
    if (known == node->children.end()) {
      auto leaf = std::make_unique<TokenNode>();
      leaf->run.assign(rest.begin(), rest.end());
      leaf->depth = tokens.size();
      leaf->parent = node;
      TokenNode& added = *node->children.emplace(rest.front(), std::move(leaf)).first->second;
      num_tokens_ += rest.size();
      return added;
    }
    std::unique_ptr<TokenNode>& place = known->second;
    const size_t common = common_length(place->run, rest);
    if (common < place->run.size()) {  // split: a new node takes the first part of the run
      auto upper = std::make_unique<TokenNode>();
      const auto cut = place->run.begin() + static_cast<std::ptrdiff_t>(common);
      upper->run.assign(place->run.begin(), cut);
      upper->depth = node->depth + common;
      upper->parent = node;
      std::vector<TokenId> lower(cut, place->run.end());
      std::unique_ptr<TokenNode>& below = upper->children[lower.front()];  // the last that may find no memory: nothing has changed yet
      place->run = std::move(lower);
      place->parent = upper.get();
      below = std::move(place);
      place = std::move(upper);
    }
    node = place.get();
  }
  return *node;
}

void TokenTree::prune(TokenNode& start) {
  TokenNode* node = &start;
  while (node->parent != nullptr && node->snapshot == nullptr && node->children.empty()) {
    TokenNode* parent = node->parent;
    num_tokens_ -= node->run.size();
    parent->children.erase(node->run.front());
    node = parent;
  }
  if (node->parent == nullptr || node->snapshot != nullptr || node->children.size() != 1) return;
  // One way on and nothing kept here: the child takes over the run.
  std::unique_ptr<TokenNode>& below = node->children.begin()->second;
  std::vector<TokenId> run = node->run;
  run.insert(run.end(), below->run.begin(), below->run.end());
  std::unique_ptr<TokenNode> child = std::move(below);
  child->run = std::move(run);
  child->parent = node->parent;
  std::unique_ptr<TokenNode>& place = child->parent->children.at(child->run.front());
  place = std::move(child);  // frees `node`
}

TokenTree::Relative TokenTree::relative(const TokenNode& node) {
  if (!node.children.empty()) return {first_snapshot_below(*node.children.begin()->second), node.depth};
  const TokenNode& parent = *node.parent;
  if (parent.parent == nullptr) return {};
  if (parent.snapshot != nullptr) return {parent.snapshot, parent.depth};
  for (const auto& [token, sibling] : parent.children) {
    if (sibling.get() != &node) return {first_snapshot_below(*sibling), parent.depth};
  }
  return {};
}

const Snapshot* TokenTree::nearest_ancestor(const TokenNode& node) {
  for (const TokenNode* above = node.parent; above != nullptr; above = above->parent) {
    if (above->snapshot != nullptr) return above->snapshot;
  }
  return nullptr;
}

std::vector<TokenId> TokenTree::tokens(const TokenNode& node) {
  std::vector<TokenId> tokens(node.depth);
  for (const TokenNode* part = &node; part->parent != nullptr; part = part->parent) {
    std::copy(part->run.begin(), part->run.end(), tokens.begin() + static_cast<std::ptrdiff_t>(part->depth - part->run.size()));
  }
  return tokens;
}

std::vector<const TokenNode*> TokenTree::nodes() const {
  std::vector<const TokenNode*> found;
  std::vector<const TokenNode*> open{root_.get()};
  while (!open.empty()) {
    const TokenNode* node = open.back();
    open.pop_back();
    if (node->parent != nullptr) found.push_back(node);
    for (auto child = node->children.rbegin(); child != node->children.rend(); ++child) open.push_back(child->second.get());
  }
  return found;
}

}  // namespace espalier
