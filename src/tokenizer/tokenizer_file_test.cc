// What a tokenizer file may not say: each case ends in one line that names file, place, expected and found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "base/file.h"
#include "tokenizer/tokenizer_test_support.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

AddedToken control(TokenId id, std::string content) {
  AddedToken token;
  token.id = id;
  token.content = std::move(content);
  token.special = true;
  return token;
}

// 256 bytes, "ab" 256, "abc" 257, <|end|> 258.
Json valid_json() { return small_tokenizer_json({{"a", "b"}, {"ab", "c"}}, {control(258, "<|end|>")}); }

struct Case {
  const char* name;
  std::function<void(Json&)> damage;
  const char* message;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class DamagedTokenizerFile : public ::testing::TestWithParam<Case> {};

TEST_P(DamagedTokenizerFile, IsRefusedInOneLine) {
  Json json = valid_json();
  GetParam().damage(json);
  const auto loaded = Tokenizer::from_json(json, nullptr, "dir/tokenizer.json");
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, AllOf(HasSubstr(GetParam().message), HasSubstr("dir/tokenizer.json: "), Not(HasSubstr("\n"))));
}

const Case kCases[] = {
    {"NotAnObject", [](Json& j) { j = Json::array(); }, "expected an object, found array"},
    {"OtherModel", [](Json& j) { j["model"]["type"] = "Unigram"; }, "model must be of type BPE, found \"Unigram\""},
    {"NoModel", [](Json& j) { j.erase("model"); }, "model must be of type BPE, found null"},
    {"ModelIsText", [](Json& j) { j["model"] = "BPE"; }, "model must be of type BPE, found \"BPE\""},
    {"OtherNormalizer", [](Json& j) { j["normalizer"]["type"] = "NFKC"; }, "normalizer must be of type NFC, found \"NFKC\""},
    {"OtherDecoder", [](Json& j) { j["decoder"]["type"] = "WordPiece"; }, "decoder must be of type ByteLevel, found \"WordPiece\""},
    {"PostProcessorThatAddsTokens", [](Json& j) { j["post_processor"] = {{"type", "TemplateProcessing"}}; }, "post_processor must be of type ByteLevel"},
    {"ByteFallback", [](Json& j) { j["model"]["byte_fallback"] = true; }, "model.byte_fallback = true is not supported"},
    {"IgnoreMerges", [](Json& j) { j["model"]["ignore_merges"] = true; }, "model.ignore_merges = true is not supported"},
    {"Dropout", [](Json& j) { j["model"]["dropout"] = 0.1; }, "model.dropout = 0.1 is not supported"},
    {"UnknownToken", [](Json& j) { j["model"]["unk_token"] = "<unk>"; }, "model.unk_token = \"<unk>\" is not supported"},
    {"WordSuffix", [](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }, "model.end_of_word_suffix = \"</w>\" is not supported"},
    {"OtherPreTokenizer", [](Json& j) { j["pre_tokenizer"] = {{"type", "Whitespace"}}; }, "pre_tokenizer: 'type' must be \"Sequence\", found \"Whitespace\""},
    {"NoVocabulary", [](Json& j) { j["model"].erase("vocab"); }, "model.vocab: expected an object, found null"},
    {"EmptyVocabulary", [](Json& j) { j["model"]["vocab"] = Json::object(); }, "is not below the number of tokens"},
    {"NegativeId", [](Json& j) { j["model"]["vocab"]["a"] = -1; }, "id of \"a\" must be below the number of tokens, 259, found -1"},
    {"FractionalId", [](Json& j) { j["model"]["vocab"]["a"] = 1.5; }, "id of \"a\" must be below the number of tokens, 259, found 1.5"},
    {"HugeId", [](Json& j) { j["model"]["vocab"]["a"] = uint64_t{1} << 40; }, "found 1099511627776"},
    {"TwoTokensOfOneId", [](Json& j) { j["model"]["vocab"]["a"] = 98; }, "two tokens have the id 98"},
    {"IdAboveAHole", [](Json& j) { j["added_tokens"].push_back(added_token_json(control(260, "<x>"))); },
     "id 260 of added token \"<x>\" is not below the number of tokens, 260"},
    {"HoleBesideARepeatedToken",
     [](Json& j) {
       j["added_tokens"].push_back(added_token_json(control(256, "ab")));
       j["added_tokens"].push_back(added_token_json(control(260, "<x>")));
     },
     "no token has the id 259, but one has 260"},
    {"ByteMissing", [](Json& j) { j["model"]["vocab"].erase("!"), j["model"]["vocab"]["!!"] = 33; }, "no token for the single byte 0x21"},
    {"SpelledOtherwise", [](Json& j) { j["model"]["vocab"]["a b"] = 259; }, "\"a b\" is not spelled in the byte-level alphabet"},
    {"EmptyToken", [](Json& j) { j["model"]["vocab"][""] = 259; }, "token 259 is spelled in 0 bytes"},
    {"HugeToken", [](Json& j) { j["model"]["vocab"][std::string(10000, 'x')] = 259; }, "token 259 is spelled in 10000 bytes, expected 1 to 8192"},
    {"MergesAreNoArray", [](Json& j) { j["model"]["merges"] = 3; }, "model.merges: expected an array, found number"},
    {"MergeOfThree", [](Json& j) { j["model"]["merges"][1] = Json::array({"a", "b", "c"}); }, "model.merges[1]: expected a pair of tokens"},
    {"MergeWithoutSpace", [](Json& j) { j["model"]["merges"][1] = "abc"; }, "model.merges[1]: expected a pair of tokens, found \"abc\""},
    {"MergeOfUnknown", [](Json& j) { j["model"]["merges"][1] = "ab zz"; }, "model.merges[1]: \"zz\" is not in the vocabulary"},
    {"MergeIntoUnknown", [](Json& j) { j["model"]["merges"][1] = "a c"; }, "model.merges[1]: \"a c\" merges into a token that is not in the vocabulary"},
    {"MergeTwice", [](Json& j) { j["model"]["merges"][1] = "a b"; }, "model.merges[1]: \"a b\" comes twice"},
    {"AddedTokensAreNoArray", [](Json& j) { j["added_tokens"] = 1; }, "added_tokens: expected an array, found number"},
    {"AddedWithoutContent", [](Json& j) { j["added_tokens"][0].erase("content"); }, "added_tokens[0]: 'content' is missing"},
    {"AddedEmpty", [](Json& j) { j["added_tokens"][0]["content"] = ""; }, "added_tokens[0]: 'content' must have 1 to 4096 bytes, found 0"},
    {"AddedNegativeId", [](Json& j) { j["added_tokens"][0]["id"] = -5; }, "added_tokens[0]: id must be 0..4194303, found -5"},
    {"AddedFlagIsText", [](Json& j) { j["added_tokens"][0]["lstrip"] = "no"; }, "added_tokens[0]: 'lstrip' must be true or false, found \"no\""},
    {"AddedBeyondAll", [](Json& j) { j["added_tokens"][0]["id"] = 5000; }, "id 5000 of added token \"<|end|>\" is not below the number of tokens, 259"},
    {"AddedOverBase", [](Json& j) { j["added_tokens"][0]["id"] = 97; }, "id 97 is both \"a\" and the added token \"<|end|>\""},
    {"AddedRepeatsBaseElsewhere", [](Json& j) { j["added_tokens"][0]["content"] = "ab"; }, "\"ab\" is token 256, but the added token 258"},
    {"AddedTwiceWithOtherFlags", [](Json& j) { AddedToken t = control(258, "<|end|>"); t.rstrip = true; j["added_tokens"].push_back(added_token_json(t)); },
     "added_tokens[1]: \"<|end|>\" with id 258, lstrip false, rstrip true, single_word false, normalized false, special true contradicts"},
    {"AddedTwiceWithOtherId", [](Json& j) { j["added_tokens"].push_back(added_token_json(control(259, "<|end|>"))); }, "contradicts"},
};

INSTANTIATE_TEST_SUITE_P(All, DamagedTokenizerFile, ::testing::ValuesIn(kCases), [](const auto& tested) { return tested.param.name; });

TEST(TokenizerFile, TheUndamagedFileLoads) {
  const auto tokenizer = Tokenizer::from_json(valid_json(), nullptr, "tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->vocab_size(), 259u);
}

TEST(TokenizerFile, MergesAsPairsOrAsTextAreTheSame) {
  Json json = valid_json();
  json["model"]["merges"] = {"a b", "ab c"};
  EXPECT_EQ(Tokenizer::from_json(json, nullptr, "t").value()->encode("abcab"), small_tokenizer({{"a", "b"}, {"ab", "c"}})->encode("abcab"));
}

TEST(TokenizerFile, AnAddedTokenMayRepeatABaseToken) {
  const auto tokenizer = small_tokenizer({{"a", "b"}}, {control(256, "ab")});
  EXPECT_EQ(tokenizer->vocab_size(), 257u);
  EXPECT_EQ(tokenizer->token_id("ab"), 256);
  EXPECT_TRUE(tokenizer->is_special(256));
}

TEST(TokenizerFile, ForeignSpellingIsFineForAnAddedToken) {
  Json json = valid_json();
  json["model"]["vocab"]["<a b>"] = 259;
  json["added_tokens"].push_back(added_token_json(control(259, "<a b>")));
  const auto tokenizer = Tokenizer::from_json(json, nullptr, "t").value();
  EXPECT_EQ(tokenizer->encode("<a b>"), std::vector<TokenId>{259});
  EXPECT_EQ(tokenizer->encode("<a b>", Tokenizer::Control::kIgnore).size(), 5u);
}

TEST(TokenizerFile, TokensOfTheConfigFileAreAdded) {
  const Json config = parse_json(R"({"added_tokens_decoder": {
      "258": {"content": "<|end|>", "lstrip": false, "rstrip": false, "single_word": false, "normalized": false, "special": true},
      "259": {"content": "<think>", "special": false, "normalized": false}}})", "config").value();
  const auto tokenizer = Tokenizer::from_json(valid_json(), &config, "t").value();
  EXPECT_EQ(tokenizer->encode("<think>x<|end|>"), (std::vector<TokenId>{259, 'x', 258}));
  EXPECT_FALSE(tokenizer->is_special(259));
  EXPECT_TRUE(tokenizer->is_added(259));
}

TEST(TokenizerFile, ConfigAndTokenizerMayNotContradictEachOther) {
  const auto message = [](const char* decoder) {
    const Json config = {{"added_tokens_decoder", parse_json(decoder, "decoder").value()}};
    return Tokenizer::from_json(valid_json(), &config, "t").error().message;
  };
  EXPECT_THAT(message(R"({"258": {"content": "<|stop|>", "special": true}})"),
              AllOf(HasSubstr("tokenizer_config.json: added_tokens_decoder.258: \"<|stop|>\""), HasSubstr("contradicts t: added_tokens[0]: \"<|end|>\"")));
  EXPECT_THAT(message(R"({"258": {"content": "<|end|>", "special": false}})"), HasSubstr("contradicts"));
  EXPECT_THAT(message(R"({"x": {"content": "<|end|>"}})"), HasSubstr("expected token ids as keys, found \"x\""));
  EXPECT_THAT(message("[]"), HasSubstr("expected an object, found array"));
}

TEST(TokenizerFile, LoadNamesTheFile) {
  const std::string dir = std::filesystem::temp_directory_path() / ("espalier_tokenizer_" + std::to_string(::getpid()));
  std::filesystem::create_directories(dir);
  EXPECT_THAT(Tokenizer::load(dir).error().message, HasSubstr(dir + "/tokenizer.json"));
  EXPECT_EQ(Tokenizer::load(dir).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(write_file_atomic(dir + "/tokenizer.json", dump_json(valid_json())).ok());
  EXPECT_EQ(Tokenizer::load(dir).value()->encode("abc"), std::vector<TokenId>{257});
  ASSERT_TRUE(write_file_atomic(dir + "/tokenizer_config.json", "{").ok());
  EXPECT_THAT(Tokenizer::load(dir).error().message, HasSubstr("tokenizer_config.json: not valid JSON"));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace espalier
