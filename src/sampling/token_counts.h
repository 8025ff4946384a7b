// How often each token stands in the prompt and in the reply so far: what penalties look at. Copyable, so that a draft path can be
// judged with exactly the prefix it has.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "base/token_id.h"

namespace espalier {

class TokenCounts {
 public:
  TokenCounts() = default;
  explicit TokenCounts(std::span<const TokenId> prompt)
      : prompt_(std::make_shared<const std::unordered_set<TokenId>>(prompt.begin(), prompt.end())) {}

  void add(TokenId token) { ++reply_[token]; }
  bool in_prompt(TokenId token) const { return prompt_ != nullptr && prompt_->contains(token); }
  const std::unordered_map<TokenId, int32_t>& reply() const { return reply_; }
  // Calls visit(token) once for every token of the prompt that the reply does not have.
  template <typename Visit>
  void visit_prompt_only(Visit&& visit) const {
    if (prompt_ == nullptr) return;
    for (const TokenId token : *prompt_) {
      if (!reply_.contains(token)) visit(token);
    }
  }

 private:
  std::shared_ptr<const std::unordered_set<TokenId>> prompt_;  // never changes, shared by copies
  std::unordered_map<TokenId, int32_t> reply_;
};

}  // namespace espalier
