#include "cache/snapshot_tree.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/result.h"

namespace espalier {
namespace {

// Once a longer snapshot of the same conversation is in use, the shorter one serves only edits and retries.
constexpr double kContinuedLog2 = -4.0;

double seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

SnapshotTree::SnapshotTree(size_t page_bytes, size_t state_bytes, CacheClock clock)
    : page_bytes_(page_bytes), state_bytes_(state_bytes), clock_(std::move(clock)) {}

const TokenTree* SnapshotTree::tree(uint64_t settings) const {
  const auto found = trees_.find(settings);
  return found == trees_.end() ? nullptr : &found->second;
}

Match SnapshotTree::match(std::span<const TokenId> prompt, size_t max_tokens, uint64_t settings) const {
  Match match;
  match.settings = settings;
  TokenTree::Walk walk;
  if (const TokenTree* own = tree(settings)) walk = own->walk(prompt);
  match.num_known = walk.num_known;
  for (const TokenNode* node : walk.nodes) {
    if (node->snapshot == nullptr || node->depth > max_tokens) continue;
    match.snapshot = PinnedSnapshot(*node->snapshot);
    match.num_hot = node->depth;
  }

  if (const auto ghost = ghosts_.longest_prefix(prompt, settings, match.num_hot, max_tokens)) {
    match.reason = ColdReason::kEvicted;
    match.evicted_count = ghost->key.count;
    match.evicted_age_s = seconds(clock_() - ghost->evicted);
    return match;
  }
  if (match.num_known > match.num_hot) {
    match.reason = ColdReason::kNoSnapshot;
  } else if (match.num_known > 0) {
    match.reason = walk.goes_on ? ColdReason::kDiverged : ColdReason::kNewText;
  } else {
    for (const auto& [other, other_tree] : trees_) {
      if (other != settings) match.other_count = std::max(match.other_count, other_tree.walk(prompt).num_known);
    }
    match.reason = match.other_count > 0 ? ColdReason::kDifferentSettings : ColdReason::kNoCommonPrefix;
  }
  return match;
}

std::vector<int32_t> SnapshotTree::wanted_captures(std::span<const TokenId> prompt, size_t num_hot, uint64_t settings, size_t limit) const {
  std::vector<int32_t> wanted;
  const TokenTree* own = tree(settings);
  if (own == nullptr) return wanted;
  const TokenTree::Walk walk = own->walk(prompt);
  for (const TokenNode* node : walk.nodes) {  // a node without a snapshot is where stored prompts parted
    if (node->snapshot == nullptr && node->depth > num_hot && node->depth < prompt.size())
      wanted.push_back(static_cast<int32_t>(node->depth));
  }
  const bool inside_run = walk.num_known > (walk.nodes.empty() ? 0 : walk.nodes.back()->depth);
  if (inside_run && walk.num_known > num_hot && walk.num_known < prompt.size()) wanted.push_back(static_cast<int32_t>(walk.num_known));
  if (wanted.size() > limit) wanted.erase(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(limit));
  return wanted;
}

Snapshot* SnapshotTree::find(std::span<const TokenId> tokens, uint64_t settings) const {
  const TokenTree* own = tree(settings);
  if (own == nullptr) return nullptr;
  const TokenTree::Walk walk = own->walk(tokens);
  if (walk.nodes.empty() || walk.nodes.back()->depth != tokens.size()) return nullptr;
  return walk.nodes.back()->snapshot;
}

Snapshot& SnapshotTree::add(std::span<const TokenId> tokens, Snapshot snapshot, int32_t page_size) {
  ESPALIER_CHECK(snapshot.key == token_key(tokens));
  TokenNode& node = trees_[snapshot.settings].insert(tokens);
  ESPALIER_CHECK(node.snapshot == nullptr);
  if (const TokenTree::Relative relative = TokenTree::relative(node); relative.snapshot != nullptr) {
    snapshot.pages.share_prefix_of(relative.snapshot->pages, relative.num_shared / static_cast<size_t>(page_size));
  }
  ghosts_.forget(snapshot.settings, snapshot.key);
  snapshot.id = next_id_++;
  snapshot.node = &node;
  snapshot.index = snapshots_.size();
  snapshot.created = snapshot.last_used = clock_();
  snapshots_.push_back(std::make_unique<Snapshot>(std::move(snapshot)));
  node.snapshot = snapshots_.back().get();
  return *node.snapshot;
}

Snapshot SnapshotTree::remove(Snapshot& snapshot) {
  ESPALIER_CHECK(snapshot.pins == 0);
  ghosts_.add({.settings = snapshot.settings, .key = snapshot.key, .evicted = clock_()});
  TokenNode& node = *snapshot.node;
  node.snapshot = nullptr;
  TokenTree& own = trees_.at(snapshot.settings);
  own.prune(node);
  if (own.num_tokens() == 0) trees_.erase(snapshot.settings);
  const size_t index = snapshot.index;
  Snapshot taken = std::move(*snapshots_[index]);
  taken.node = nullptr;
  std::swap(snapshots_[index], snapshots_.back());
  snapshots_[index]->index = index;
  snapshots_.pop_back();
  return taken;
}

void SnapshotTree::used(Snapshot& snapshot) {
  ++snapshot.hits;
  refreshed(snapshot);
  for (TokenNode* above = snapshot.node->parent; above != nullptr; above = above->parent) {
    if (above->snapshot != nullptr) above->snapshot->continued = true;
  }
}

void SnapshotTree::refreshed(Snapshot& snapshot) {
  snapshot.last_used = clock_();
  snapshot.continued = false;
}

std::vector<TokenId> SnapshotTree::tokens(const Snapshot& snapshot) const {
  std::vector<TokenId> tokens = TokenTree::tokens(*snapshot.node);
  ESPALIER_CHECK(token_key(tokens) == snapshot.key);
  return tokens;
}

double SnapshotTree::log2_value(const Snapshot& snapshot) const {
  const Snapshot* parent = TokenTree::nearest_ancestor(*snapshot.node);
  const size_t saved = snapshot.key.count - (parent == nullptr ? 0 : parent->key.count);
  const double use = static_cast<double>(saved) * static_cast<double>(1 + snapshot.hits);
  const double half_lives = seconds(clock_() - snapshot.last_used) / seconds(kHalfLife);
  return std::log2(use / static_cast<double>(freed_bytes(snapshot))) - half_lives + (snapshot.continued ? kContinuedLog2 : 0.0);
}

Snapshot* SnapshotTree::least_valuable() const {
  Snapshot* least = nullptr;
  double least_value = 0;
  for (const std::unique_ptr<Snapshot>& snapshot : snapshots_) {
    if (snapshot->pins > 0) continue;
    const double value = log2_value(*snapshot);
    if (least == nullptr || value < least_value) {
      least = snapshot.get();
      least_value = value;
    }
  }
  return least;
}

size_t SnapshotTree::freed_bytes(const Snapshot& snapshot) const { return state_bytes_ + snapshot.pages.num_exclusive() * page_bytes_; }

SnapshotInfo SnapshotTree::describe(const Snapshot& snapshot) const {
  const Snapshot* parent = TokenTree::nearest_ancestor(*snapshot.node);
  return {.id = snapshot.id,
          .parent = parent == nullptr ? -1 : parent->id,
          .num_tokens = snapshot.key.count,
          .freed_bytes = freed_bytes(snapshot),
          .num_pages = snapshot.pages.size(),
          .kind = snapshot.kind,
          .settings = snapshot.settings,
          .hits = snapshot.hits,
          .age_s = seconds(clock_() - snapshot.created),
          .idle_s = seconds(clock_() - snapshot.last_used),
          .pinned = snapshot.pins > 0};
}

std::vector<SnapshotInfo> SnapshotTree::list() const {
  std::vector<SnapshotInfo> infos;
  for (const auto& [settings, own] : trees_) {
    for (const TokenNode* node : own.nodes()) {
      if (node->snapshot != nullptr) infos.push_back(describe(*node->snapshot));
    }
  }
  return infos;
}

size_t SnapshotTree::num_known_tokens() const {
  size_t count = 0;
  for (const auto& [settings, own] : trees_) count += own.num_tokens();
  return count;
}

void SnapshotTree::check_invariants() const {
  size_t num_filed = 0;
  for (const auto& [settings, own] : trees_) {
    size_t num_tokens = 0;
    for (const TokenNode* node : own.nodes()) {
      num_tokens += node->run.size();
      ESPALIER_CHECK(!node->run.empty() && node->depth == node->parent->depth + node->run.size());
      ESPALIER_CHECK(node->parent->children.at(node->run.front()).get() == node);
      ESPALIER_CHECK(node->snapshot != nullptr || node->children.size() >= 2);  // else nobody needs it
      if (node->snapshot == nullptr) continue;
      ++num_filed;
      ESPALIER_CHECK(node->snapshot->node == node && node->snapshot->settings == settings && node->snapshot->key.count == node->depth);
      ESPALIER_CHECK(tokens(*node->snapshot).size() == node->depth);
    }
    ESPALIER_CHECK(num_tokens == own.num_tokens() && num_tokens > 0);
  }
  ESPALIER_CHECK(num_filed == snapshots_.size());
  for (size_t i = 0; i < snapshots_.size(); ++i) ESPALIER_CHECK(snapshots_[i]->index == i && snapshots_[i]->pins >= 0);
}

}  // namespace espalier
