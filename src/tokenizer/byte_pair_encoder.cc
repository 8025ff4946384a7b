#include "tokenizer/byte_pair_encoder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <queue>

namespace espalier {
namespace {

constexpr size_t kShortPiece = 48;  // up to here searching all ranks for the lowest beats a heap

}  // namespace

BytePairEncoder::BytePairEncoder(const Vocabulary& vocabulary, const MergeTable& merges) : vocabulary_(vocabulary), merges_(merges) {
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    const char c = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary.find({&c, 1}).value();
  }
  reachable_.resize(vocabulary.size());
  std::vector<TokenId> ids;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    ids.clear();
    merge_to_ids(vocabulary.bytes(static_cast<TokenId>(id)), ids);
    reachable_[id] = ids.size() == 1 && ids[0] == static_cast<TokenId>(id);
  }
}

void BytePairEncoder::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (const auto whole = vocabulary_.find(piece); whole && reachable_[static_cast<size_t>(*whole)]) {
    ids.push_back(*whole);
  } else {
    merge_to_ids(piece, ids);
  }
}

void BytePairEncoder::merge_to_ids(std::string_view piece, std::vector<TokenId>& ids) const {
  if (piece.size() <= kShortPiece) {
    merge_short(piece, ids);
  } else {
    merge_long(piece, ids);
  }
}

void BytePairEncoder::merge_short(std::string_view piece, std::vector<TokenId>& ids) const {
  TokenId symbols[kShortPiece];
  uint32_t ranks[kShortPiece];  // of each symbol with its right neighbour
  size_t count = piece.size();
  for (size_t i = 0; i < count; ++i) symbols[i] = byte_ids_[static_cast<uint8_t>(piece[i])];
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = merges_.rank(symbols[i], symbols[i + 1]);
  while (count > 1) {
    const size_t at = static_cast<size_t>(std::min_element(ranks, ranks + count - 1) - ranks);
    if (ranks[at] == MergeTable::kNone) break;
    symbols[at] = merges_.merged(ranks[at]);
    std::memmove(symbols + at + 1, symbols + at + 2, (count - at - 2) * sizeof *symbols);
    if (count - at > 2) std::memmove(ranks + at + 1, ranks + at + 2, (count - at - 3) * sizeof *ranks);
    --count;
    if (at + 1 < count) ranks[at] = merges_.rank(symbols[at], symbols[at + 1]);
    if (at > 0) ranks[at - 1] = merges_.rank(symbols[at - 1], symbols[at]);
  }
  ids.insert(ids.end(), symbols, symbols + count);
}

void BytePairEncoder::merge_long(std::string_view piece, std::vector<TokenId>& ids) const {
  struct Symbol {
    TokenId id;     // -1: merged into a symbol to its left
    uint32_t rank;  // with the next symbol
    size_t previous;
    size_t next;
  };
  constexpr size_t kEnd = SIZE_MAX;
  std::vector<Symbol> symbols(piece.size());
  using Candidate = std::pair<uint32_t, size_t>;  // rank, then position: the leftmost of equals first
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](size_t at) {
    Symbol& symbol = symbols[at];
    symbol.rank = symbol.next == kEnd ? MergeTable::kNone : merges_.rank(symbol.id, symbols[symbol.next].id);
    if (symbol.rank != MergeTable::kNone) candidates.emplace(symbol.rank, at);
  };

  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i] = {byte_ids_[static_cast<uint8_t>(piece[i])], MergeTable::kNone, i == 0 ? kEnd : i - 1, i + 1 == symbols.size() ? kEnd : i + 1};
  }
  for (size_t i = 0; i < symbols.size(); ++i) consider(i);
  while (!candidates.empty()) {
    const auto [rank, at] = candidates.top();
    candidates.pop();
    Symbol& left = symbols[at];
    if (left.id < 0 || left.rank != rank) continue;  // a neighbour changed since
    Symbol& right = symbols[left.next];
    left.id = merges_.merged(rank);
    left.next = right.next;
    right.id = -1;
    if (left.next != kEnd) symbols[left.next].previous = at;
    consider(at);
    if (left.previous != kEnd) consider(left.previous);
  }
  for (size_t i = 0; i != kEnd; i = symbols[i].next) ids.push_back(symbols[i].id);
}

}  // namespace espalier
