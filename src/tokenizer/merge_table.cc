#include "tokenizer/merge_table.h"

#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/file_limits.h"

namespace espalier {
namespace {

static_assert(kMaxTokens <= size_t{1} << 22 && kMaxMerges < size_t{1} << 20, "ids and ranks must fit in a slot");

using SpelledPair = std::pair<std::string_view, std::string_view>;

std::optional<SpelledPair> spelled_pair(const Json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return SpelledPair{merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
  }
  if (!merge.is_string()) return std::nullopt;
  const std::string_view text = merge.get_ref<const std::string&>();
  const size_t space = text.find(' ');  // a space inside a token is spelled otherwise
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return SpelledPair{text.substr(0, space), text.substr(space + 1)};
}

}  // namespace

Result<MergeTable> MergeTable::from_json(const Json& merges, const Vocabulary& vocabulary, std::string_view where) {
  if (!merges.is_array()) return make_error(ErrorCode::kCorrupt, "{}: expected an array, found {}", where, merges.type_name());
  if (merges.size() > kMaxMerges) return make_error(ErrorCode::kCorrupt, "{}: {} merges exceed the limit of {}", where, merges.size(), kMaxMerges);
  MergeTable table;
  table.slots_.assign(std::bit_ceil(2 * merges.size() + 2), kEmpty);
  table.mask_ = table.slots_.size() - 1;
  table.shift_ = 64 - std::countr_zero(table.slots_.size());
  table.merged_.reserve(merges.size());
  for (uint32_t rank = 0; rank < merges.size(); ++rank) {
    const Json& merge = merges[rank];
    const std::optional<SpelledPair> pair = spelled_pair(merge);
    if (!pair) return make_error(ErrorCode::kCorrupt, "{}[{}]: expected a pair of tokens, found {}", where, rank, excerpt(merge));
    const std::optional<std::string> left = bytes_of_spelling(pair->first);
    const std::optional<std::string> right = bytes_of_spelling(pair->second);
    const std::optional<TokenId> left_id = left ? vocabulary.find(*left) : std::nullopt;
    const std::optional<TokenId> right_id = right ? vocabulary.find(*right) : std::nullopt;
    if (!left_id) return make_error(ErrorCode::kCorrupt, "{}[{}]: {} is not in the vocabulary", where, rank, excerpt(std::string(pair->first)));
    if (!right_id) return make_error(ErrorCode::kCorrupt, "{}[{}]: {} is not in the vocabulary", where, rank, excerpt(std::string(pair->second)));
    const std::optional<TokenId> merged = vocabulary.find(*left + *right);
    if (!merged) return make_error(ErrorCode::kCorrupt, "{}[{}]: {} merges into a token that is not in the vocabulary", where, rank, excerpt(merge));
    if (!table.insert(*left_id, *right_id, rank)) return make_error(ErrorCode::kCorrupt, "{}[{}]: {} comes twice", where, rank, excerpt(merge));
    table.merged_.push_back(*merged);
  }
  return table;
}

bool MergeTable::insert(TokenId left, TokenId right, uint32_t rank) {
  const uint64_t pair = key(left, right);
  size_t at = slot(pair);
  for (; slots_[at] != kEmpty; at = (at + 1) & mask_) {
    if (slots_[at] >> kRankBits == pair) return false;
  }
  slots_[at] = (pair << kRankBits) | rank;
  return true;
}

}  // namespace espalier
