// The tokenizer against encodings, pieces and streams made by other implementations (../shared/oracle/tokenizer).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/support/oracle.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace espalier {
namespace {

using testing::read_gzip;
using testing::read_jsonl;
using testing::shared_path;

const Json& qwen_json() {
  static const Json json = parse_json(read_gzip(shared_path("oracle/tokenizer/tokenizer.json.gz")), "tokenizer.json").value();
  return json;
}

std::shared_ptr<const Tokenizer> qwen() {
  static const std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::from_json(qwen_json(), nullptr, "tokenizer.json").value();
  return tokenizer;
}

std::vector<TokenId> ids_of(const Json& row) { return row["ids"].get<std::vector<TokenId>>(); }

TEST(TokenizerGolden, EncodesAsTheReference) {
  ESPALIER_REQUIRE_SHARED();
  const std::vector<Json> rows = read_jsonl(shared_path("oracle/tokenizer/encode.jsonl"));
  ASSERT_EQ(rows.size(), 698u);
  for (const Json& row : rows) EXPECT_EQ(qwen()->encode(row["text"].get<std::string>()), ids_of(row)) << row["id"] << " " << row["text"];
}

TEST(TokenizerGolden, DecodesAsTheReference) {
  ESPALIER_REQUIRE_SHARED();
  for (const Json& row : read_jsonl(shared_path("oracle/tokenizer/encode.jsonl"))) {
    const std::string whole = row.value("decoded", row["text"].get<std::string>());
    EXPECT_EQ(qwen()->decode(ids_of(row)), whole) << row["id"];
    EXPECT_EQ(qwen()->decode(ids_of(row), SkipSpecial::kYes), row.value("decoded_skip_special", whole)) << row["id"];
  }
}

TEST(TokenizerGolden, CutsPiecesAsTheReference) {
  ESPALIER_REQUIRE_SHARED();
  const PreTokenizer pre_tokenizer = PreTokenizer::from_json(qwen_json()["pre_tokenizer"], "pre_tokenizer").value();
  for (const Json& row : read_jsonl(shared_path("oracle/tokenizer/pretokenize.jsonl"))) {
    const std::string text = row["text"].get<std::string>();
    std::vector<std::string> pieces;
    for (size_t begin = 0; begin < text.size(); begin += pieces.back().size()) {
      pieces.push_back(text.substr(begin, pre_tokenizer.piece_end(text, begin) - begin));
    }
    EXPECT_EQ(pieces, row["pieces"].get<std::vector<std::string>>()) << row["id"] << " " << row["text"];
  }
}

TEST(TokenizerGolden, StreamsAsTheReference) {
  ESPALIER_REQUIRE_SHARED();
  const std::vector<Json> rows = read_jsonl(shared_path("oracle/tokenizer/stream.jsonl"));
  ASSERT_EQ(rows.size(), 351u);
  for (const Json& row : rows) {
    const SkipSpecial skip = row["skip_special"].get<bool>() ? SkipSpecial::kYes : SkipSpecial::kNo;
    StreamingDetokenizer detokenizer(qwen(), skip);
    std::vector<std::string> deltas;
    for (const TokenId id : ids_of(row)) deltas.push_back(detokenizer.push(id));
    EXPECT_EQ(deltas, row["deltas"].get<std::vector<std::string>>()) << row.dump();
    EXPECT_EQ(detokenizer.flush(), row["flush"].get<std::string>()) << row.dump();
    EXPECT_EQ(qwen()->decode(ids_of(row), skip), row["text"].get<std::string>()) << row.dump();
  }
}

TEST(TokenizerGolden, AddedTokensHaveTheirIdsAndFlags) {
  ESPALIER_REQUIRE_SHARED();
  const Json expected = load_json(shared_path("oracle/tokenizer/added_tokens.json")).value();
  ASSERT_EQ(qwen()->added_tokens().size(), expected.size());
  for (const Json& token : expected) {
    const TokenId id = token["id"].get<TokenId>();
    EXPECT_EQ(qwen()->token_id(token["content"].get<std::string>()), id);
    EXPECT_TRUE(qwen()->is_added(id));
    EXPECT_EQ(qwen()->is_special(id), token["special"].get<bool>()) << token["content"];
  }
  EXPECT_EQ(qwen()->vocab_size(), 248077u);
}

// Vocabulary entries that no merge produces are addressable, but no text yields them, not even their own.
TEST(TokenizerGolden, OrphanTokensAreNeverProduced) {
  ESPALIER_REQUIRE_SHARED();
  const Json orphans = load_json(shared_path("oracle/tokenizer/orphan_tokens.json")).value();
  const Json& ids = orphans["ids"];
  ASSERT_EQ(ids.size(), 201u);
  for (const Json& id : ids) {
    const std::vector<TokenId> encoded = qwen()->encode(qwen()->token_bytes(id.get<TokenId>()));
    EXPECT_EQ(std::count(encoded.begin(), encoded.end(), id.get<TokenId>()), 0) << "id " << id;
  }
}

// The same merges spelled as pairs: the tiny checkpoint's tokenizer is a prefix of the full one's construction.
TEST(TokenizerGolden, ReadsMergesSpelledAsPairs) {
  ESPALIER_REQUIRE_SHARED();
  const auto tiny = Tokenizer::load(shared_path("oracle/tiny-hybrid")).value();
  EXPECT_EQ(tiny->vocab_size(), 480u);
  for (const Json& row : read_jsonl(shared_path("oracle/tokenizer/encode.jsonl"))) {
    const std::string whole = row.value("decoded", row["text"].get<std::string>());
    EXPECT_EQ(tiny->decode(tiny->encode(row["text"].get<std::string>())), whole) << row["id"];
  }
}

}  // namespace
}  // namespace espalier
