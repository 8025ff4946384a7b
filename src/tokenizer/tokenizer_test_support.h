// Small tokenizers for tests, written down as a tokenizer.json would be.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/added_token.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/tokenizer.h"

namespace espalier {

using MergeOfBytes = std::pair<std::string, std::string>;

inline constexpr const char* kMarksInWordsPattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
inline constexpr const char* kMarksOutsideWordsPattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

inline Json pre_tokenizer_json(const std::string& pattern) {
  Json split = {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  return {{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level})}};
}

inline Json added_token_json(const AddedToken& token) {
  return {{"id", token.id},         {"content", token.content},         {"single_word", token.single_word}, {"lstrip", token.lstrip},
          {"rstrip", token.rstrip}, {"normalized", token.normalized}, {"special", token.special}};
}

// Ids: byte b is b, the result of merge r is 256 + r (unless it exists already).
inline Json small_tokenizer_json(const std::vector<MergeOfBytes>& merges, const std::vector<AddedToken>& added = {}) {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[spelling_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  Json pairs = Json::array();
  for (const auto& [left, right] : merges) {
    pairs.push_back(Json::array({spelling_of_bytes(left), spelling_of_bytes(right)}));
    if (const std::string merged = spelling_of_bytes(left + right); !vocab.contains(merged)) vocab[merged] = vocab.size();
  }
  Json tokens = Json::array();
  for (const AddedToken& token : added) tokens.push_back(added_token_json(token));
  return {{"version", "1.0"},
          {"added_tokens", tokens},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", pre_tokenizer_json(kMarksInWordsPattern)},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", pairs}}}};
}

inline std::shared_ptr<const Tokenizer> small_tokenizer(const std::vector<MergeOfBytes>& merges, const std::vector<AddedToken>& added = {}) {
  return Tokenizer::from_json(small_tokenizer_json(merges, added), nullptr, "tokenizer.json").value();
}

// Random valid UTF-8 that dwells on what tokenizers get wrong: marks, digits, spaces, line ends, quotes, emoji, CJK, Hangul parts.
template <typename Random>
std::string random_text(Random& random, size_t num_chars) {
  static constexpr uint32_t kInteresting[] = {'a', 'Z', 's', 'T', '\'', ' ', ' ', '\n', '\r', '\t', '0', '9', '.', '<', '|', '>', '_', 0xA0, 0xE9, 0xB2, 0x17F, 0x300,
      0x301, 0x316, 0x345, 0x3B1, 0x410, 0x5D0, 0x64B, 0x93C, 0x915, 0x958, 0x9C7, 0x9BE, 0xE33, 0x1100, 0x1161, 0x11A8, 0x1E9B, 0x200D, 0x2028,
      0x212B, 0x3000, 0x4E2D, 0x6BDB, 0xAC00, 0xAC01, 0xFB01, 0xFE0F, 0xFFFD, 0x1F642, 0x1F468, 0x1D15E, 0x2F800, 0x10FFFF};
  std::string text;
  for (size_t i = 0; i < num_chars; ++i) {
    uint32_t point = kInteresting[random() % std::size(kInteresting)];
    if (random() % 8 == 0) point = static_cast<uint32_t>(random() % 0x110000);
    if (point >= 0xD800 && point < 0xE000) point = '-';
    append_utf8(text, point);
  }
  return text;
}

}  // namespace espalier
