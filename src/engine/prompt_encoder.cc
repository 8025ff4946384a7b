#include "engine/prompt_encoder.h"

#include <algorithm>
#include <utility>

namespace espalier {

EncodedPrompt PromptEncoder::encode(const MarkedText& prompt, std::span<const size_t> branch_points, ReplyIds reply_ids) {
  EncodedPrompt encoded;
  // A segment is known by its text; that stands for its marks too only if every control token cuts segments.
  if (!tokenizer_->controls_split_raw_text()) reply_ids = ReplyIds::kCanonical;
  encoded.history.known = reply_ids == ReplyIds::kAdopt;
  const std::string_view text = prompt.text;
  struct Boundary {
    size_t bytes;
    size_t ids;
  };
  std::vector<Boundary> boundaries;
  Hash128 key;
  size_t begin = 0;
  std::vector<TokenId> ids;  // of the segment from `begin` on
  const auto append = [&](std::span<const TokenId> more) { encoded.ids.insert(encoded.ids.end(), more.begin(), more.end()); };

  size_t plain_begin = 0;  // ordinary text between `begin` and the next control token, not tokenised yet
  const auto tokenise_plain = [&](size_t end) {
    if (plain_begin < end) {
      const std::vector<TokenId> plain = tokenizer_->encode(prompt.substr(plain_begin, end - plain_begin));
      ids.insert(ids.end(), plain.begin(), plain.end());
    }
  };
  for (const TextSegment& piece : tokenizer_->control_segments(prompt)) {
    if (!piece.token.has_value()) continue;
    const std::string_view segment = text.substr(begin, piece.range.end - begin);
    const Hash128 before = std::exchange(key, segment_key(key, segment));
    bool found = false;
    if (reply_ids == ReplyIds::kAdopt) {
      const std::lock_guard lock(mutex_);
      if (const Segment* known = find(key, before, segment)) {
        append(known->ids);
        if (known->generated) encoded.adopted_tokens += static_cast<int64_t>(known->ids.size());
        found = true;
      }
    }
    if (!found) {
      tokenise_plain(piece.range.begin);
      ids.push_back(*piece.token);
      append(ids);
      if (reply_ids == ReplyIds::kAdopt) {
        const std::lock_guard lock(mutex_);
        remember(key, {.before = before, .text = std::string(segment), .ids = std::move(ids), .generated = false, .age = {}});
      }
    }
    ids.clear();
    begin = plain_begin = piece.range.end;
    boundaries.push_back({begin, encoded.ids.size()});
  }
  tokenise_plain(text.size());
  encoded.history.key = key;
  encoded.history.open_text = text.substr(begin);
  append(ids);
  encoded.history.open_ids = std::move(ids);

  for (const size_t point : branch_points) {
    const auto after = std::upper_bound(boundaries.begin(), boundaries.end(), point, [](size_t p, const Boundary& b) { return p < b.bytes; });
    if (after != boundaries.begin()) encoded.branch_points.push_back(static_cast<int64_t>(std::prev(after)->ids));
  }
  std::sort(encoded.branch_points.begin(), encoded.branch_points.end());
  encoded.branch_points.erase(std::unique(encoded.branch_points.begin(), encoded.branch_points.end()), encoded.branch_points.end());
  return encoded;
}

void PromptEncoder::learn_reply(const PromptHistory& history, std::span<const TokenId> reply) {
  if (!history.known) return;
  const std::lock_guard lock(mutex_);
  Hash128 key = history.key;
  std::string text = history.open_text;
  std::vector<TokenId> ids = history.open_ids;
  for (const TokenId token : reply) {
    text += tokenizer_->token_bytes(token);
    ids.push_back(token);
    if (!tokenizer_->is_added(token)) continue;
    const Hash128 before = std::exchange(key, segment_key(key, text));
    remember(key, {.before = before, .text = std::exchange(text, {}), .ids = std::exchange(ids, {}), .generated = true, .age = {}});
  }
}

const PromptEncoder::Segment* PromptEncoder::find(const Hash128& key, const Hash128& before, std::string_view text) {
  const auto found = segments_.find(key);
  if (found == segments_.end() || found->second.before != before || found->second.text != text) return nullptr;
  by_age_.splice(by_age_.begin(), by_age_, found->second.age);
  return &found->second;
}

void PromptEncoder::remember(const Hash128& key, Segment segment) {
  if (const auto found = segments_.find(key); found != segments_.end()) {
    bytes_ -= cost(found->second);
    by_age_.erase(found->second.age);
    segments_.erase(found);
  }
  bytes_ += cost(segment);
  by_age_.push_front(key);
  segment.age = by_age_.begin();
  segments_.emplace(key, std::move(segment));
  while (bytes_ > max_bytes_ && !by_age_.empty()) {
    const auto oldest = segments_.find(by_age_.back());
    bytes_ -= cost(oldest->second);
    segments_.erase(oldest);
    by_age_.pop_back();
  }
}

size_t PromptEncoder::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace espalier
