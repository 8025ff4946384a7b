#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>

#include "base/format.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/file_limits.h"

namespace espalier {
namespace {

struct Entry {
  std::string bytes;
  enum class Kind : uint8_t {
    kNone,
    kBase,
    kForeign,  // in the base vocabulary, but not spelled in the byte-level alphabet: must be an added token too
    kAdded,
  } kind = Kind::kNone;
  bool base = false;
};

// An integer in 0 .. limit - 1.
std::optional<size_t> index_below(size_t limit, const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (!value.is_number_unsigned() && value.get<int64_t>() < 0) return std::nullopt;
  const auto index = value.get<uint64_t>();
  return index < limit ? std::optional<size_t>(index) : std::nullopt;
}

Result<std::vector<Entry>> read_base(const Json& base, size_t num_ids, std::string_view where) {
  std::vector<Entry> entries(num_ids);
  for (const auto& [spelling, id] : base.items()) {
    const std::optional<size_t> index = index_below(num_ids, id);
    if (!index) {
      return make_error(ErrorCode::kCorrupt, "{}: id of {} must be below the number of tokens, {}, found {}", where, excerpt(spelling), num_ids, excerpt(id));
    }
    if (spelling.empty() || spelling.size() > 2 * kMaxTokenBytes) {
      return make_error(ErrorCode::kCorrupt, "{}: token {} is spelled in {} bytes, expected 1 to {}", where, excerpt(id), spelling.size(), 2 * kMaxTokenBytes);
    }
    Entry& entry = entries[*index];
    if (entry.kind != Entry::Kind::kNone) return make_error(ErrorCode::kCorrupt, "{}: two tokens have the id {}, one is {}", where, excerpt(id), excerpt(spelling));
    const std::optional<std::string> bytes = bytes_of_spelling(spelling);
    entry = {bytes ? *bytes : spelling, bytes ? Entry::Kind::kBase : Entry::Kind::kForeign, true};
  }
  return entries;
}

Status place_added(std::vector<Entry>& entries, std::span<const AddedToken> added, std::string_view where) {
  for (const AddedToken& token : added) {
    if (static_cast<size_t>(token.id) >= entries.size()) {
      return make_error(ErrorCode::kCorrupt, "{}: id {} of added token {} is not below the number of tokens, {}", where, token.id, excerpt(token.content),
                        entries.size());
    }
    Entry& entry = entries[static_cast<size_t>(token.id)];
    if (entry.kind != Entry::Kind::kNone && entry.bytes != token.content) {
      return make_error(ErrorCode::kCorrupt, "{}: id {} is both {} and the added token {}", where, token.id, excerpt(replace_invalid_utf8(entry.bytes)),
                        excerpt(token.content));
    }
    entry = {token.content, Entry::Kind::kAdded, entry.kind == Entry::Kind::kBase};
  }
  return Ok{};
}

}  // namespace

Result<Vocabulary> Vocabulary::from_json(const Json& base, std::span<const AddedToken> added, std::string_view where) {
  if (!base.is_object()) return make_error(ErrorCode::kCorrupt, "{}: expected an object, found {}", where, base.type_name());
  if (base.size() + added.size() > kMaxTokens) {
    return make_error(ErrorCode::kCorrupt, "{}: {} tokens exceed the limit of {}", where, base.size() + added.size(), kMaxTokens);
  }
  ESPALIER_ASSIGN(std::vector<Entry> entries, read_base(base, base.size() + added.size(), where));
  ESPALIER_TRY(place_added(entries, added, where));
  while (!entries.empty() && entries.back().kind == Entry::Kind::kNone) entries.pop_back();

  Vocabulary vocabulary;
  std::vector<bool> is_base;
  for (const Entry& entry : entries) {
    if (entry.kind == Entry::Kind::kNone) return make_error(ErrorCode::kCorrupt, "{}: no token has the id {}, but one has {}", where, is_base.size(), entries.size() - 1);
    if (entry.kind == Entry::Kind::kForeign) return make_error(ErrorCode::kUnsupported, "{}: {} is not spelled in the byte-level alphabet", where, excerpt(entry.bytes));
    vocabulary.arena_ += entry.bytes;
    vocabulary.ends_.push_back(static_cast<uint32_t>(vocabulary.arena_.size()));
    is_base.push_back(entry.base);
  }
  if (vocabulary.arena_.size() > UINT32_MAX) return make_error(ErrorCode::kCorrupt, "{}: {} bytes of tokens exceed 4 GiB", where, vocabulary.arena_.size());
  vocabulary.index_base(is_base);

  for (const AddedToken& token : added) {
    const auto same = vocabulary.find(token.content);
    if (same && *same != token.id) {
      return make_error(ErrorCode::kCorrupt, "{}: {} is token {}, but the added token {}", where, excerpt(token.content), *same, token.id);
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (!vocabulary.find({&c, 1})) return make_error(ErrorCode::kUnsupported, "{}: no token for the single byte {:#04x}", where, byte);
  }
  return vocabulary;
}

void Vocabulary::index_base(const std::vector<bool>& is_base) {
  slots_.resize(std::bit_ceil(2 * is_base.size() + 2));
  const size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < is_base.size(); ++id) {
    if (!is_base[id]) continue;
    const uint64_t hash = hash64(bytes(static_cast<TokenId>(id)));
    size_t at = hash & mask;
    while (slots_[at].id >= 0) at = (at + 1) & mask;
    slots_[at] = {static_cast<uint32_t>(hash >> 32), static_cast<TokenId>(id)};
  }
}

std::optional<TokenId> Vocabulary::find(std::string_view wanted) const {
  const uint64_t hash = hash64(wanted);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].id >= 0; at = (at + 1) & mask) {
    if (slots_[at].tag == static_cast<uint32_t>(hash >> 32) && bytes(slots_[at].id) == wanted) return slots_[at].id;
  }
  return std::nullopt;
}

}  // namespace espalier
