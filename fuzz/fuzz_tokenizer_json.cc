// A tokenizer.json from anyone, with a tokenizer_config.json under the key "tokenizer_config": it loads or is refused in one line, and
// what loads encodes the very bytes it was loaded from, so that decoding restores them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/nfc.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = parse_json(text, "tokenizer.json");
  if (!document.ok()) return 0;
  const Json* config = nullptr;
  if (document->is_object() && document->contains("tokenizer_config")) config = &(*document)["tokenizer_config"];
  const auto loaded = Tokenizer::from_json(*document, config, "tokenizer.json");
  if (!loaded.ok()) {
    ESPALIER_CHECK(is_valid_utf8(loaded.error().message) && loaded.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const Tokenizer& tokenizer = **loaded;
  std::string storage;
  const std::string_view normal = to_nfc(text, storage);
  ESPALIER_CHECK(tokenizer.decode(tokenizer.encode(text, Tokenizer::Control::kIgnore)) == normal);
  MarkedText marked(text.substr(0, size / 2), Origin::kTemplate);
  marked.append(text.substr(size / 2), Origin::kInput);
  for (const TokenId id : tokenizer.encode(marked)) ESPALIER_CHECK(id >= 0 && static_cast<size_t>(id) < tokenizer.vocab_size());
  tokenizer.encode(text);
  return 0;
}
