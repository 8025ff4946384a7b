#include "replay/prefix_ceiling.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace espalier {
namespace {

size_t common_length(std::span<const TokenId> a, std::span<const TokenId> b) {
  const size_t limit = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(limit), b.begin()).first - a.begin());
}

}  // namespace

PromptCeiling PrefixCeiling::add(const CeilingPrompt& prompt) {
  const PromptCeiling served = match(prompt.ids);
  uint32_t node = 0;
  size_t done = 0;
  for (const int64_t position : prompt.snapshots) {
    const size_t end = static_cast<size_t>(position);
    ESPALIER_CHECK(position >= 1 && end <= prompt.ids.size() && end >= done);
    node = extend(node, prompt.ids.subspan(done, end - done));
    nodes_[node].snapshot = true;
    done = end;
  }
  extend(node, prompt.ids.subspan(done));
  ++totals_.prompts;
  totals_.prompt_tokens += static_cast<int64_t>(prompt.ids.size());
  totals_.perfect += served.perfect;
  totals_.snapshot += served.snapshot;
  return served;
}

PromptCeiling PrefixCeiling::match(std::span<const TokenId> ids) const {
  PromptCeiling served;
  if (ids.empty()) return served;
  ids = ids.first(ids.size() - 1);  // the last token's logits are always computed
  uint32_t node = 0;
  size_t depth = 0;
  while (depth < ids.size()) {
    const auto child = nodes_[node].children.find(ids[depth]);
    if (child == nodes_[node].children.end()) break;
    node = child->second;
    const size_t common = common_length(nodes_[node].label, ids.subspan(depth));
    depth += common;
    if (common < nodes_[node].label.size()) break;
    if (nodes_[node].snapshot) served.snapshot = static_cast<int64_t>(depth);
  }
  served.perfect = static_cast<int64_t>(depth);
  return served;
}

uint32_t PrefixCeiling::extend(uint32_t node, std::span<const TokenId> ids) {
  while (!ids.empty()) {
    const uint32_t next = static_cast<uint32_t>(nodes_.size());
    const auto [child, is_new] = nodes_[node].children.try_emplace(ids[0], next);
    if (is_new) {
      nodes_.emplace_back().label.assign(ids.begin(), ids.end());
      tree_tokens_ += static_cast<int64_t>(ids.size());
      return next;
    }
    node = child->second;
    const size_t common = common_length(nodes_[node].label, ids);
    if (common < nodes_[node].label.size()) split(node, common);
    ids = ids.subspan(common);
  }
  return node;
}

// The node keeps the head of its label; a new child takes the rest with the children and the snapshot.
void PrefixCeiling::split(uint32_t node, size_t label_size) {
  const uint32_t tail_index = static_cast<uint32_t>(nodes_.size());
  Node& tail = nodes_.emplace_back();
  Node& head = nodes_[node];
  const auto cut = head.label.begin() + static_cast<std::ptrdiff_t>(label_size);
  tail.label.assign(cut, head.label.end());
  tail.children = std::exchange(head.children, {});
  tail.snapshot = std::exchange(head.snapshot, false);
  head.label.erase(cut, head.label.end());
  head.label.shrink_to_fit();
  head.children.emplace(tail.label[0], tail_index);
}

}  // namespace espalier
