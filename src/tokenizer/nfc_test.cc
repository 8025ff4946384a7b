#include "tokenizer/nfc.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "base/utf8.h"
#include "tokenizer/tokenizer_test_support.h"

namespace espalier {
namespace {

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

TEST(Nfc, ComposesAndOrdersMarks) {
  EXPECT_EQ(nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(nfc("xe\u0301y"), "x\u00E9y");
  EXPECT_EQ(nfc("a\u0301\u0316"), "\u00E1\u0316");       // the mark below does not block
  EXPECT_EQ(nfc("a\u0301\u0300"), "\u00E1\u0300");       // marks of one class keep their order
  EXPECT_EQ(nfc("s\u0307\u0323"), "\u1E69");             // reordered, then composed twice
  EXPECT_EQ(nfc("\u1E9B\u0323"), "\u1E9B\u0323");
  EXPECT_EQ(nfc("\u0301"), "\u0301");                    // nothing to compose with
  EXPECT_EQ(nfc("\u09C7\u09BE"), "\u09CB");              // a second part that is no mark by class
}

TEST(Nfc, ReplacesWhatMustNotStay) {
  EXPECT_EQ(nfc("\u212B"), "\u00C5");                    // angstrom sign
  EXPECT_EQ(nfc("\u2126"), "\u03A9");                    // ohm sign
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");              // excluded from composition
  EXPECT_EQ(nfc("\U0002F800"), "\u4E3D");                // compatibility ideograph
  EXPECT_EQ(nfc("\uFB01"), "\uFB01");                    // a ligature is only a compatibility matter
}

TEST(Nfc, ComposesHangul) {
  EXPECT_EQ(nfc("\u1100\u1161"), "\uAC00");
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(nfc("\uAC00\u11A8"), "\uAC01");
  EXPECT_EQ(nfc("\u1161\u1161"), "\u1161\u1161");
}

TEST(Nfc, TextThatIsNfcIsNotCopied) {
  for (const std::string text : {"", "plain", "a longer line of ASCII text\n", "caf\u00E9 \u4E2D\u6587 \uAC01 \U0001F468\u200D\U0001F469 \u1EBF \u03AC"}) {
    std::string storage;
    EXPECT_EQ(to_nfc(text, storage).data(), text.data()) << text;
  }
}

TEST(Nfc, InvalidBytesBecomeReplacementCharacters) {
  EXPECT_EQ(nfc("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(nfc("\xE4\xB8"), "\uFFFD");
  EXPECT_EQ(nfc("e\xCC"), "e\uFFFD");
  EXPECT_EQ(nfc("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
}

// Text cut before a letter normalises part by part; normal text stays; the marked form agrees with the plain one.
TEST(Nfc, CutsAndRepetitionsChangeNothing) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    const std::string left = random_text(random, random() % 12);
    const std::string right = "q" + random_text(random, random() % 12);
    const std::string whole = nfc(left + right);
    ASSERT_EQ(whole, nfc(left) + nfc(right)) << "seed 11, round " << round;
    ASSERT_EQ(nfc(whole), whole) << "seed 11, round " << round;
    MarkedText marked;
    for (const char byte : left + right) marked.append({&byte, 1}, random() % 3 == 0 ? Origin::kInput : Origin::kTemplate);
    ASSERT_EQ(to_nfc(marked).text, whole) << "seed 11, round " << round;
  }
}

TEST(Nfc, MarkedTextKeepsItsBordersWhereNothingComposes) {
  MarkedText text("system\u00E9", Origin::kTemplate);
  text.append("user\u0301s", Origin::kInput);
  text.append("\u4E2D", Origin::kTemplate);
  MarkedText expected("system\u00E9", Origin::kTemplate);
  expected.append("use\u0155s", Origin::kInput);
  expected.append("\u4E2D", Origin::kTemplate);
  EXPECT_EQ(to_nfc(text), expected);
}

TEST(Nfc, WhatInputComposesWithBecomesInput) {
  MarkedText text("</e", Origin::kTemplate);
  text.append("\u0301>", Origin::kInput);
  MarkedText expected("</", Origin::kTemplate);
  expected.append("\u00E9>", Origin::kInput);
  EXPECT_EQ(to_nfc(text), expected);
}

// A request may hold a million marks in the worst order: sorting them must not take quadratic time (minutes).
TEST(Nfc, PilesOfMarksTakeSeconds) {
  std::string text = "a";
  for (int i = 0; i < 300000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0316";
  const auto start = std::chrono::steady_clock::now();
  const std::string normal = nfc(text);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(normal.substr(0, 4), "\u00E1\u0316");
  EXPECT_EQ(decode_utf8(normal, normal.size() - 2).value, 0x301u);
}

}  // namespace
}  // namespace espalier
