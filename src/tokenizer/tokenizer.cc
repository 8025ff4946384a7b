#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"
#include "tokenizer/added_token_file.h"
#include "tokenizer/added_token_matcher.h"
#include "tokenizer/byte_pair_encoder.h"
#include "tokenizer/file_limits.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/nfc.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace espalier {
namespace {

const Json& member(const Json& object, const char* key) {
  static const Json null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

Status require_type(const Json& tokenizer_json, const char* part, std::string_view wanted, std::string_view name) {
  const Json& found = member(tokenizer_json, part);
  if (found.is_object() && member(found, "type") == Json(wanted)) return Ok{};
  return make_error(ErrorCode::kUnsupported, "{}: {} must be of type {}, found {}", name, part, wanted, excerpt(found.is_object() ? member(found, "type") : found));
}

// Settings of the BPE model that would change ids. Absent, null and false (or empty) all mean that a setting is not used.
Status check_model(const Json& model, std::string_view name) {
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges"}) {
    const Json& value = member(model, key);
    if (!value.is_null() && value != Json(false) && value != Json("")) {
      return make_error(ErrorCode::kUnsupported, "{}: model.{} = {} is not supported", name, key, excerpt(value));
    }
  }
  return Ok{};
}

// What the file would do to every text is done, or refused here; truncation and padding are a caller's business and not read.
Status check_parts(const Json& tokenizer_json, std::string_view name) {
  if (!tokenizer_json.is_object()) return make_error(ErrorCode::kCorrupt, "{}: expected an object, found {}", name, tokenizer_json.type_name());
  ESPALIER_TRY(require_type(tokenizer_json, "model", "BPE", name));
  ESPALIER_TRY(require_type(tokenizer_json, "normalizer", "NFC", name));
  ESPALIER_TRY(require_type(tokenizer_json, "decoder", "ByteLevel", name));
  if (!member(tokenizer_json, "post_processor").is_null()) ESPALIER_TRY(require_type(tokenizer_json, "post_processor", "ByteLevel", name));
  return check_model(tokenizer_json["model"], name);
}

std::vector<AddedToken> select(const std::vector<AddedToken>& tokens, bool normalized) {
  std::vector<AddedToken> selected;
  std::string storage;
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized) continue;
    selected.push_back(token);
    if (normalized) selected.back().content = std::string(to_nfc(token.content, storage));
  }
  return selected;
}

std::vector<TextRange> template_ranges(const MarkedText& text) {
  std::vector<TextRange> ranges;
  size_t begin = 0;
  for (const MarkedSpan& span : text.spans) {
    if (span.origin == Origin::kTemplate) ranges.push_back({begin, span.end});
    begin = span.end;
  }
  return ranges;
}

// The bytes of `range` with the marks that say template within the `allowed` ranges and input elsewhere.
MarkedText marked_range(std::string_view text, TextRange range, std::span<const TextRange> allowed) {
  MarkedText marked;
  size_t at = range.begin;
  for (const TextRange& part : allowed) {
    const size_t begin = std::clamp(part.begin, at, range.end);
    const size_t end = std::clamp(part.end, begin, range.end);
    marked.append(text.substr(at, begin - at), Origin::kInput);
    marked.append(text.substr(begin, end - begin), Origin::kTemplate);
    at = end;
  }
  marked.append(text.substr(at, range.end - at), Origin::kInput);
  return marked;
}

}  // namespace

struct Tokenizer::Parts {
  Parts(std::vector<AddedToken> added_tokens, Vocabulary vocabulary_of_file, MergeTable merges_of_file, PreTokenizer pre_tokenizer_of_file)
      : added(std::move(added_tokens)),
        raw_matcher(select(added, false)),
        normal_matcher(select(added, true)),
        vocabulary(std::move(vocabulary_of_file)),
        merges(std::move(merges_of_file)),
        pre_tokenizer(pre_tokenizer_of_file),
        encoder(vocabulary, merges) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  const AddedToken* find_added(TokenId id) const {
    const auto found = std::lower_bound(added.begin(), added.end(), id, [](const AddedToken& token, TokenId wanted) { return token.id < wanted; });
    return found != added.end() && found->id == id ? &*found : nullptr;
  }

  // `text` is in NFC and holds no added tokens.
  void encode_pieces(std::string_view text, std::vector<TokenId>& ids) const {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = pre_tokenizer.piece_end(text, begin);
      encoder.encode(text.substr(begin, end - begin), ids);
      begin = end;
    }
  }

  void encode_plain(std::string_view text, std::vector<TokenId>& ids) const {
    std::string storage;
    encode_pieces(to_nfc(text, storage), ids);
  }

  // `allowed`: where added tokens may be matched.
  void encode(std::string_view text, std::span<const TextRange> allowed, std::vector<TokenId>& ids) const {
    for (const TextSegment& segment : raw_matcher.split(text, allowed)) {
      if (segment.token) {
        ids.push_back(*segment.token);
      } else if (normal_matcher.empty()) {
        encode_plain(text.substr(segment.range.begin, segment.range.end - segment.range.begin), ids);
      } else {
        encode_normalized(to_nfc(marked_range(text, segment.range, allowed)), ids);
      }
    }
  }

  void encode_normalized(const MarkedText& normal, std::vector<TokenId>& ids) const {
    for (const TextSegment& segment : normal_matcher.split(normal.text, template_ranges(normal))) {
      if (segment.token) {
        ids.push_back(*segment.token);
      } else {
        encode_pieces(std::string_view(normal.text).substr(segment.range.begin, segment.range.end - segment.range.begin), ids);
      }
    }
  }

  std::vector<AddedToken> added;  // by ascending id
  AddedTokenMatcher raw_matcher;
  AddedTokenMatcher normal_matcher;
  Vocabulary vocabulary;
  MergeTable merges;
  PreTokenizer pre_tokenizer;
  BytePairEncoder encoder;
};

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const std::string& model_dir) {
  const JsonLimits limits{.max_bytes = kMaxTokenizerFileBytes};
  const std::string path = model_dir + "/tokenizer.json";
  ESPALIER_ASSIGN(const Json tokenizer_json, load_json(path, limits));
  Result<Json> config = load_json(model_dir + "/tokenizer_config.json", limits);
  if (!config.ok() && config.error().code != ErrorCode::kNotFound) return std::move(config).error();
  return from_json(tokenizer_json, config.ok() ? &config.value() : nullptr, path);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(const Json& tokenizer_json, const Json* tokenizer_config, std::string_view name) {
  ESPALIER_TRY(check_parts(tokenizer_json, name));
  const Json& model = tokenizer_json["model"];
  ESPALIER_ASSIGN(const PreTokenizer pre_tokenizer, PreTokenizer::from_json(member(tokenizer_json, "pre_tokenizer"), format("{}: pre_tokenizer", name)));
  ESPALIER_ASSIGN(std::vector<AddedToken> added, read_added_tokens(tokenizer_json, tokenizer_config, name));
  ESPALIER_ASSIGN(Vocabulary vocabulary, Vocabulary::from_json(member(model, "vocab"), added, format("{}: model.vocab", name)));
  ESPALIER_ASSIGN(MergeTable merges, MergeTable::from_json(member(model, "merges"), vocabulary, format("{}: model.merges", name)));
  auto parts = std::make_unique<const Parts>(std::move(added), std::move(vocabulary), std::move(merges), pre_tokenizer);
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(parts)));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, Control control) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3);
  if (control == Control::kMatch) {
    const TextRange whole{0, text.size()};
    parts_->encode(text, {&whole, 1}, ids);
  } else {
    parts_->encode_plain(text, ids);
  }
  return ids;
}

std::vector<TokenId> Tokenizer::encode(const MarkedText& text) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3);
  parts_->encode(text.text, template_ranges(text), ids);
  return ids;
}

std::vector<TextSegment> Tokenizer::control_segments(const MarkedText& text) const {
  return parts_->raw_matcher.split(text.text, template_ranges(text));
}

bool Tokenizer::controls_split_raw_text() const { return parts_->normal_matcher.empty(); }

std::string Tokenizer::decode(std::span<const TokenId> ids, SkipSpecial skip) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (skip == SkipSpecial::kNo || !is_special(id)) bytes += token_bytes(id);
  }
  return replace_invalid_utf8(bytes);
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
  if (id < 0 || static_cast<size_t>(id) >= vocab_size()) return {};
  return parts_->vocabulary.bytes(id);
}

size_t Tokenizer::vocab_size() const { return parts_->vocabulary.size(); }

std::optional<TokenId> Tokenizer::token_id(std::string_view bytes) const {
  for (const AddedToken& token : parts_->added) {
    if (token.content == bytes) return token.id;
  }
  return parts_->vocabulary.find(bytes);
}

bool Tokenizer::is_added(TokenId id) const { return parts_->find_added(id) != nullptr; }

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* token = parts_->find_added(id);
  return token != nullptr && token->special;
}

const std::vector<AddedToken>& Tokenizer::added_tokens() const { return parts_->added; }

}  // namespace espalier
