#include "engine/choice_constraint.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace espalier {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr size_t kLongestToken = 64;  // bytes; what longer tokens spell is spelt by shorter ones as well

class ChoiceConstraint final : public TokenConstraint {
 public:
  // `choices`: sorted, different, none empty.
  ChoiceConstraint(const Tokenizer& tokenizer, std::vector<std::string> choices)
      : tokenizer_(&tokenizer), choices_(std::make_shared<const std::vector<std::string>>(std::move(choices))), last_(choices_->size()) {}

  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<ChoiceConstraint>(*this); }

  void mask(std::span<float> logits) const override {
    if (done_) return;
    std::vector<std::pair<TokenId, float>> allowed;
    float best = kNever;
    std::string_view before;
    for (size_t i = first_; i < last_; ++i) {
      const std::string_view rest = std::string_view((*choices_)[i]).substr(length_, kLongestToken);
      const auto parting = std::mismatch(rest.begin(), rest.end(), before.begin(), before.end()).first;
      for (auto length = static_cast<size_t>(parting - rest.begin()) + 1; length <= rest.size(); ++length) {
        const std::optional<TokenId> token = tokenizer_->token_id(rest.substr(0, length));
        if (!token.has_value() || tokenizer_->is_special(*token) || static_cast<size_t>(*token) >= logits.size()) continue;
        const float logit = logits[static_cast<size_t>(*token)];
        allowed.emplace_back(*token, logit);
        best = logit > best ? logit : best;
      }
      before = rest;
    }
    ESPALIER_CHECK(!allowed.empty() && "every byte is a token");
    std::fill(logits.begin(), logits.end(), kNever);
    for (const auto& [token, logit] : allowed) logits[static_cast<size_t>(token)] = best == kNever ? 0.0f : logit;
  }

  void advance(TokenId token) override {
    if (done_) return;
    const std::string_view bytes = tokenizer_->token_bytes(token);
    const auto continues = [&](size_t i) { return std::string_view((*choices_)[i]).substr(length_).starts_with(bytes); };
    while (first_ < last_ && !continues(first_)) ++first_;
    while (first_ < last_ && !continues(last_ - 1)) --last_;
    ESPALIER_CHECK(first_ < last_ && !bytes.empty() && "only allowed tokens are chosen");
    length_ += bytes.size();
    done_ = (*choices_)[first_].size() == length_;
  }

 private:
  const Tokenizer* tokenizer_;
  std::shared_ptr<const std::vector<std::string>> choices_;
  size_t first_ = 0;  // [first_, last_) begin with the text so far, which is length_ bytes long
  size_t last_;
  size_t length_ = 0;
  bool done_ = false;
};

}  // namespace

std::shared_ptr<const TokenConstraint> make_choice_constraint(const Tokenizer& tokenizer, std::vector<std::string> choices) {
  std::sort(choices.begin(), choices.end());
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  if (choices.empty() || choices.front().empty()) return nullptr;
  return std::make_shared<const ChoiceConstraint>(tokenizer, std::move(choices));
}

}  // namespace espalier
