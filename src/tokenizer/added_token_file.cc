#include "tokenizer/added_token_file.h"

#include <charconv>
#include <map>
#include <string>
#include <unordered_map>

#include "base/format.h"
#include "tokenizer/file_limits.h"

namespace espalier {
namespace {

Result<bool> flag(const Json& token, const char* key, bool absent, std::string_view where) {
  if (!token.contains(key)) return absent;
  return json_bool(token, key, where);
}

Result<AddedToken> read_token(const Json& token, int64_t id, std::string_view where) {
  if (id < 0 || static_cast<size_t>(id) >= kMaxTokens) {
    return make_error(ErrorCode::kCorrupt, "{}: id must be 0..{}, found {}", where, kMaxTokens - 1, id);
  }
  AddedToken read;
  read.id = static_cast<TokenId>(id);
  ESPALIER_ASSIGN(read.content, json_string(token, "content", where));
  if (read.content.empty() || read.content.size() > kMaxTokenBytes) {
    return make_error(ErrorCode::kCorrupt, "{}: 'content' must have 1 to {} bytes, found {}", where, kMaxTokenBytes, read.content.size());
  }
  ESPALIER_ASSIGN(read.lstrip, flag(token, "lstrip", false, where));
  ESPALIER_ASSIGN(read.rstrip, flag(token, "rstrip", false, where));
  ESPALIER_ASSIGN(read.single_word, flag(token, "single_word", false, where));
  ESPALIER_ASSIGN(read.special, flag(token, "special", false, where));
  ESPALIER_ASSIGN(read.normalized, flag(token, "normalized", !read.special, where));
  return read;
}

std::string describe(const AddedToken& token) {
  return format("{} with id {}, lstrip {}, rstrip {}, single_word {}, normalized {}, special {}", excerpt(token.content), token.id, token.lstrip,
                token.rstrip, token.single_word, token.normalized, token.special);
}

// The tokens so far, with where each was first defined.
class Union {
 public:
  Status add(const AddedToken& token, const std::string& where) {
    const auto same_id = by_id_.find(token.id);
    const auto same_content = id_of_.find(token.content);
    if (same_id == by_id_.end() && same_content == id_of_.end()) {
      id_of_.emplace(token.content, token.id);
      by_id_.emplace(token.id, Definition{token, where});
      return Ok{};
    }
    const Definition& other = same_id != by_id_.end() ? same_id->second : by_id_.at(same_content->second);
    if (other.token == token) return Ok{};
    return make_error(ErrorCode::kCorrupt, "{}: {} contradicts {}: {}", where, describe(token), other.where, describe(other.token));
  }

  std::vector<AddedToken> take() && {
    std::vector<AddedToken> tokens;
    for (auto& [id, definition] : by_id_) tokens.push_back(std::move(definition.token));
    return tokens;
  }

 private:
  struct Definition {
    AddedToken token;
    std::string where;
  };
  std::map<TokenId, Definition> by_id_;
  std::unordered_map<std::string, TokenId> id_of_;
};

Status read_list(const Json& list, const std::string& where, Union& tokens) {
  if (!list.is_array()) return make_error(ErrorCode::kCorrupt, "{}: expected an array, found {}", where, list.type_name());
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string entry_where = format("{}[{}]", where, i);
    ESPALIER_ASSIGN(const int64_t id, json_int(list[i], "id", entry_where));
    ESPALIER_ASSIGN(const AddedToken token, read_token(list[i], id, entry_where));
    ESPALIER_TRY(tokens.add(token, entry_where));
  }
  return Ok{};
}

Status read_decoder(const Json& decoder, const std::string& where, Union& tokens) {
  if (!decoder.is_object()) return make_error(ErrorCode::kCorrupt, "{}: expected an object, found {}", where, decoder.type_name());
  for (const auto& [key, value] : decoder.items()) {
    int64_t id = -1;
    const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (failure != std::errc() || end != key.data() + key.size()) {
      return make_error(ErrorCode::kCorrupt, "{}: expected token ids as keys, found {}", where, excerpt(key));
    }
    const std::string entry_where = format("{}.{}", where, key);
    ESPALIER_ASSIGN(const AddedToken token, read_token(value, id, entry_where));
    ESPALIER_TRY(tokens.add(token, entry_where));
  }
  return Ok{};
}

}  // namespace

Result<std::vector<AddedToken>> read_added_tokens(const Json& tokenizer_json, const Json* tokenizer_config, std::string_view name) {
  Union tokens;
  if (tokenizer_json.contains("added_tokens")) {
    ESPALIER_TRY(read_list(tokenizer_json["added_tokens"], format("{}: added_tokens", name), tokens));
  }
  if (tokenizer_config != nullptr && tokenizer_config->is_object() && tokenizer_config->contains("added_tokens_decoder")) {
    ESPALIER_TRY(read_decoder((*tokenizer_config)["added_tokens_decoder"], "tokenizer_config.json: added_tokens_decoder", tokens));
  }
  return std::move(tokens).take();
}

}  // namespace espalier
