#include "tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/tokenizer_test_support.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pieces = std::vector<std::string>;

PreTokenizer with_pattern(const char* pattern) { return PreTokenizer::from_json(pre_tokenizer_json(pattern), "pre_tokenizer").value(); }

Pieces pieces_of(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Pieces pieces;
  for (size_t begin = 0; begin < text.size(); begin += pieces.back().size()) {
    pieces.emplace_back(text.substr(begin, pre_tokenizer.piece_end(text, begin) - begin));
  }
  return pieces;
}

TEST(PreTokenizer, WordsTakeOneCharacterBeforeThem) {
  const PreTokenizer p = with_pattern(kMarksInWordsPattern);
  EXPECT_THAT(pieces_of(p, "foo_bar-baz (qux)"), ElementsAre("foo", "_bar", "-baz", " (", "qux", ")"));
  EXPECT_THAT(pieces_of(p, "a  b"), ElementsAre("a", " ", " b"));
  EXPECT_THAT(pieces_of(p, "\tif"), ElementsAre("\tif"));
  EXPECT_THAT(pieces_of(p, "\nif"), ElementsAre("\n", "if"));
}

TEST(PreTokenizer, ContractionsComeFirstInAnyCase) {
  const PreTokenizer p = with_pattern(kMarksInWordsPattern);
  EXPECT_THAT(pieces_of(p, "it's WE'LL I'm'"), ElementsAre("it", "'s", " WE", "'LL", " I", "'m", "'"));
  EXPECT_THAT(pieces_of(p, "'stop 'r 're"), ElementsAre("'s", "top", " '", "r", " '", "re"));
  EXPECT_THAT(pieces_of(p, "'\u017Fx"), ElementsAre("'\u017F", "x"));  // the long s folds to s
}

TEST(PreTokenizer, NumbersStandAlone) {
  EXPECT_THAT(pieces_of(with_pattern(kMarksInWordsPattern), "v12 3\u00B2"), ElementsAre("v", "1", "2", " ", "3", "\u00B2"));
}

TEST(PreTokenizer, PunctuationTakesTheLineEndsAfterIt) {
  const PreTokenizer p = with_pattern(kMarksInWordsPattern);
  EXPECT_THAT(pieces_of(p, "x {\r\n\n  y"), ElementsAre("x", " {\r\n\n", " ", " y"));
  EXPECT_THAT(pieces_of(p, ".\n.\n"), ElementsAre(".\n", ".\n"));
}

TEST(PreTokenizer, SpaceRuns) {
  const PreTokenizer p = with_pattern(kMarksInWordsPattern);
  EXPECT_THAT(pieces_of(p, "a \n \n  1"), ElementsAre("a", " \n \n", " ", " ", "1"));
  EXPECT_THAT(pieces_of(p, "a   "), ElementsAre("a", "   "));
  EXPECT_THAT(pieces_of(p, "a \u3000b"), ElementsAre("a", " ", "\u3000b"));
  EXPECT_THAT(pieces_of(p, " "), ElementsAre(" "));
}

TEST(PreTokenizer, MarksBelongToWordsOnlyInTheNewerPattern) {
  EXPECT_THAT(pieces_of(with_pattern(kMarksInWordsPattern), "q\u0301x !\u0301"), ElementsAre("q\u0301x", " !", "\u0301"));
  EXPECT_THAT(pieces_of(with_pattern(kMarksOutsideWordsPattern), "q\u0301x !\u0301"), ElementsAre("q", "\u0301x", " !\u0301"));
}

// The patterns once more, as literally as a backtracking engine reads them.
class LiteralRegex {
 public:
  LiteralRegex(std::string_view text, bool marks_in_words) : marks_in_words_(marks_in_words) {
    for (size_t i = 0; i < text.size();) {
      const CodePoint point = decode_utf8(text, i);
      points_.push_back(point.value);
      offsets_.push_back(i);
      i += point.length;
    }
    offsets_.push_back(text.size());
  }

  Pieces pieces(std::string_view text) const {
    Pieces found;
    for (size_t at = 0; at < points_.size();) {
      const size_t end = match(at);
      found.emplace_back(text.substr(offsets_[at], offsets_[end] - offsets_[at]));
      at = end;
    }
    return found;
  }

 private:
  CharClass type(size_t at) const { return char_classes()[points_[at]]; }
  bool end(size_t at) const { return at >= points_.size(); }
  bool line_end(size_t at) const { return !end(at) && (points_[at] == '\r' || points_[at] == '\n'); }
  bool space(size_t at) const { return !end(at) && type(at) == CharClass::kSpace; }
  bool number(size_t at) const { return !end(at) && type(at) == CharClass::kNumber; }
  bool letter(size_t at) const { return !end(at) && type(at) == CharClass::kLetter; }
  bool mark(size_t at) const { return marks_in_words_ && !end(at) && type(at) == CharClass::kMark; }
  bool word(size_t at) const { return letter(at) || mark(at); }
  bool other(size_t at) const { return !end(at) && !space(at) && !word(at) && !number(at); }
  template <typename Predicate>
  size_t run(size_t at, Predicate predicate) const {
    while (predicate(at)) ++at;
    return at;
  }

  size_t match(size_t at) const {
    static const std::vector<std::u32string> kContractions = {U"s", U"t", U"re", U"ve", U"m", U"ll", U"d"};
    const auto same_letter = [&](size_t i, char32_t wanted) {
      return !end(i) && (points_[i] == wanted || points_[i] == wanted - 32 || (wanted == U's' && points_[i] == 0x17F));
    };
    for (const std::u32string& letters : kContractions) {
      bool same = points_[at] == '\'';
      for (size_t i = 0; i < letters.size(); ++i) same = same && same_letter(at + 1 + i, letters[i]);
      if (same) return at + 1 + letters.size();
    }
    const auto words = [&](size_t i) { return run(i, [&](size_t j) { return word(j); }); };
    if (!line_end(at) && !letter(at) && !number(at) && words(at + 1) > at + 1) return words(at + 1);
    if (words(at) > at) return words(at);
    if (number(at)) return at + 1;
    for (const size_t start : {points_[at] == ' ' ? at + 1 : at, at}) {
      const size_t others = run(start, [&](size_t j) { return other(j); });
      if (others > start) return run(others, [&](size_t j) { return line_end(j); });
    }
    const size_t spaces = run(at, [&](size_t j) { return space(j); });
    for (size_t start = spaces + 1; start-- > at;) {
      const size_t lines = run(start, [&](size_t j) { return line_end(j); });
      if (lines > start) return lines;
    }
    for (size_t stop = spaces; stop > at; --stop) {
      if (end(stop) || space(stop)) return stop;
    }
    return spaces;
  }

  bool marks_in_words_;
  std::vector<uint32_t> points_;
  std::vector<size_t> offsets_;
};

TEST(PreTokenizer, EqualsTheLiteralPatternOnRandomText) {
  for (const bool marks_in_words : {true, false}) {
    const PreTokenizer p = with_pattern(marks_in_words ? kMarksInWordsPattern : kMarksOutsideWordsPattern);
    std::mt19937 random(3);
    for (int round = 0; round < 20000; ++round) {
      const std::string text = random_text(random, 1 + random() % 10);
      ASSERT_EQ(pieces_of(p, text), LiteralRegex(text, marks_in_words).pieces(text)) << "seed 3, round " << round << ": " << text;
    }
  }
}

TEST(PreTokenizer, RefusesWhatItDoesNotDoByName) {
  const auto message = [](const Json& json) { return PreTokenizer::from_json(json, "t.json: pre_tokenizer").error().message; };
  EXPECT_THAT(message(Json()), HasSubstr("t.json: pre_tokenizer: 'type' must be \"Sequence\", found nothing"));
  EXPECT_THAT(message({{"type", "Metaspace"}}), HasSubstr("found \"Metaspace\""));
  EXPECT_THAT(message(pre_tokenizer_json("\\w+")), HasSubstr("regex is not one of the Qwen family's two: \"\\\\w+\""));
  Json json = pre_tokenizer_json(kMarksInWordsPattern);
  json["pretokenizers"][0]["behavior"] = "Removed";
  EXPECT_THAT(message(json), HasSubstr("pretokenizers[0]: 'behavior' must be \"Isolated\", found \"Removed\""));
  json = pre_tokenizer_json(kMarksInWordsPattern);
  json["pretokenizers"][1]["add_prefix_space"] = true;
  EXPECT_THAT(message(json), HasSubstr("pretokenizers[1]: 'add_prefix_space' must be false, found true"));
  json["pretokenizers"].push_back({{"type", "Digits"}});
  EXPECT_THAT(message(json), HasSubstr("must be a Split and a ByteLevel"));
}

}  // namespace
}  // namespace espalier
