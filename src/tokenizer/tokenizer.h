// Byte-level BPE of the Qwen family, read from a checkpoint's tokenizer.json: added tokens, NFC, the file's pre-tokeniser, merges.
// Immutable after loading and usable from every thread at once. What the file asks for and this code does not do is refused by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/token_id.h"
#include "tokenizer/added_token.h"
#include "tokenizer/added_token_matcher.h"
#include "tokenizer/marked_text.h"

namespace espalier {

enum class SkipSpecial : uint8_t { kNo, kYes };

class Tokenizer {
 public:
  // Reads `model_dir`/tokenizer.json and, where there is one, tokenizer_config.json (its added_tokens_decoder).
  static Result<std::shared_ptr<const Tokenizer>> load(const std::string& model_dir);
  // The same from parsed documents; `tokenizer_config` may be null. `name` names tokenizer.json in errors.
  static Result<std::shared_ptr<const Tokenizer>> from_json(const Json& tokenizer_json, const Json* tokenizer_config, std::string_view name);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Whether text that spells an added token becomes that token.
  enum class Control : uint8_t { kMatch, kIgnore };
  // Ids of `text`. Invalid UTF-8 is read as U+FFFD. No tokens are put before or after. Time n log n in the worst case.
  std::vector<TokenId> encode(std::string_view text, Control control = Control::kMatch) const;
  // An added token is matched only where all of its bytes have Origin::kTemplate; everything else is ordinary text, not cut at span
  // borders: where the input spells no added token, alone or with its neighbours, the ids are those of encode(text.text).
  std::vector<TokenId> encode(const MarkedText& text) const;

  // The text cut at its control tokens, in order and without gaps: encode(text) is the ids of the pieces one after the other.
  std::vector<TextSegment> control_segments(const MarkedText& text) const;

  // Whether control tokens split the text before anything else does. False where some are matched in normalised text (`normalized`).
  bool controls_split_raw_text() const;

  // Text of `ids` as one whole: bytes that form no character become U+FFFD; ids outside the vocabulary yield nothing.
  std::string decode(std::span<const TokenId> ids, SkipSpecial skip = SkipSpecial::kNo) const;
  // The bytes that `id` stands for, maybe a part of a character; empty outside the vocabulary. Valid as long as the tokenizer.
  std::string_view token_bytes(TokenId id) const;

  // Highest id + 1. Logit rows from here on are padding.
  size_t vocab_size() const;
  // The token that stands for exactly these bytes; an added token wins over a base token.
  std::optional<TokenId> token_id(std::string_view bytes) const;
  bool is_added(TokenId id) const;
  bool is_special(TokenId id) const;
  // By ascending id.
  const std::vector<AddedToken>& added_tokens() const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace espalier
