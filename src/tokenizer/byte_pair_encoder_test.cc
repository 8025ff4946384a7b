#include "tokenizer/byte_pair_encoder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>

#include "tokenizer/tokenizer_test_support.h"

namespace espalier {
namespace {

struct Model {
  explicit Model(const std::vector<MergeOfBytes>& merges_of_bytes)
      : json(small_tokenizer_json(merges_of_bytes)["model"]),
        vocabulary(Vocabulary::from_json(json["vocab"], {}, "vocab").value()),
        merges(MergeTable::from_json(json["merges"], vocabulary, "merges").value()),
        encoder(vocabulary, merges) {}

  std::vector<std::string> encode(std::string_view piece) const {
    std::vector<TokenId> ids;
    encoder.encode(piece, ids);
    std::vector<std::string> tokens;
    for (const TokenId id : ids) tokens.emplace_back(vocabulary.bytes(id));
    return tokens;
  }

  Json json;
  Vocabulary vocabulary;
  MergeTable merges;
  BytePairEncoder encoder;
};

// The definition: the pair of lowest rank merges, the leftmost of equals, until none is left.
std::vector<std::string> encode_by_definition(const std::vector<MergeOfBytes>& merges, std::string_view piece) {
  std::vector<std::string> symbols;
  for (const char c : piece) symbols.emplace_back(1, c);
  while (true) {
    size_t best_rank = merges.size();
    size_t best_at = 0;
    for (size_t at = 0; at + 1 < symbols.size(); ++at) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank] == MergeOfBytes{symbols[at], symbols[at + 1]}) {
          best_rank = rank;
          best_at = at;
        }
      }
    }
    if (best_rank == merges.size()) return symbols;
    symbols[best_at] += symbols[best_at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

TEST(BytePairEncoder, LowestRankFirstThenLeftmost) {
  const Model model({{"b", "c"}, {"a", "b"}, {"a", "a"}});
  EXPECT_EQ(model.encode("abc"), (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(model.encode("aaa"), (std::vector<std::string>{"aa", "a"}));
}

TEST(BytePairEncoder, EqualsTheDefinitionOnRandomMergesAndPieces) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::set<MergeOfBytes> seen;
    std::vector<MergeOfBytes> merges;
    while (merges.size() < 25) {
      const MergeOfBytes merge = {tokens[random() % tokens.size()], tokens[random() % tokens.size()]};
      if (merge.first.size() + merge.second.size() > 12 || !seen.insert(merge).second) continue;
      merges.push_back(merge);
      tokens.push_back(merge.first + merge.second);
    }
    const Model model(merges);
    for (const size_t length : {1, 2, 3, 7, 20, 47, 48, 49, 50, 130}) {  // below, at and above the border between the two loops
      std::string piece;
      for (size_t i = 0; i < length; ++i) piece += static_cast<char>('a' + random() % 3);
      ASSERT_EQ(model.encode(piece), encode_by_definition(merges, piece)) << "seed 5, round " << round << ", piece " << piece;
    }
  }
}

// "abcd" is in the vocabulary and a merge makes it, but merging a b c d never reaches that merge.
TEST(BytePairEncoder, TokensThatMergingCannotReachAreNotTaken) {
  const std::vector<MergeOfBytes> merges = {{"b", "c"}, {"a", "b"}, {"c", "d"}, {"ab", "cd"}};
  const Model model(merges);
  ASSERT_TRUE(model.vocabulary.find("abcd").has_value());
  EXPECT_EQ(model.encode("abcd"), (std::vector<std::string>{"a", "bc", "d"}));
}

TEST(BytePairEncoder, OnePieceOfAMebibyteTakesSeconds) {
  const Model model({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}});
  const std::string piece((size_t{1} << 20) + 1, 'a');
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> tokens = model.encode(piece);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(tokens.size(), (size_t{1} << 17) + 1);
}

}  // namespace
}  // namespace espalier
