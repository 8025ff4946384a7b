// The bytes of every token id, and the base token of given bytes. Immutable after building.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/token_id.h"
#include "tokenizer/added_token.h"

namespace espalier {

class Vocabulary {
 public:
  // `base` is model.vocab of tokenizer.json (spelling -> id); `where` names it in errors. Together with `added`, the ids must be
  // 0 .. size() - 1, each for one token; an added token may repeat a base token. All 256 bytes must be base tokens.
  static Result<Vocabulary> from_json(const Json& base, std::span<const AddedToken> added, std::string_view where);

  size_t size() const { return ends_.size(); }
  std::string_view bytes(TokenId id) const {
    const auto index = static_cast<size_t>(id);
    const size_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(arena_).substr(begin, ends_[index] - begin);
  }
  // The base token that stands for exactly these bytes.
  std::optional<TokenId> find(std::string_view bytes) const;

 private:
  Vocabulary() = default;
  void index_base(const std::vector<bool>& is_base);

  struct Slot {
    uint32_t tag = 0;  // other bits of the hash than those that choose the slot
    int32_t id = -1;   // -1: empty
  };
  std::string arena_;           // all tokens' bytes by ascending id
  std::vector<uint32_t> ends_;  // end of each token in the arena
  std::vector<Slot> slots_;     // open addressing; a power of two, at most half full
};

}  // namespace espalier
