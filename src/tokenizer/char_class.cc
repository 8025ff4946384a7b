#include "tokenizer/char_class.h"

#include <algorithm>
#include <memory>
#include <span>

namespace espalier {
namespace {

struct CodePointRange {
  uint32_t first;
  uint32_t last;
};

#include "tokenizer/unicode_classes.inc"

void fill(CharClassTable& table, std::span<const CodePointRange> ranges, CharClass value) {
  for (const CodePointRange& range : ranges) std::fill(table.begin() + range.first, table.begin() + range.last + 1, value);
}

std::unique_ptr<CharClassTable> build_table() {
  auto table = std::make_unique<CharClassTable>();
  fill(*table, kLetterRanges, CharClass::kLetter);
  fill(*table, kMarkRanges, CharClass::kMark);
  fill(*table, kNumberRanges, CharClass::kNumber);
  fill(*table, kSpaceRanges, CharClass::kSpace);
  return table;
}

}  // namespace

const CharClassTable& char_classes() {
  static const std::unique_ptr<const CharClassTable> table = build_table();
  return *table;
}

}  // namespace espalier
