// Added tokens as the two tokenizer files define them.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tokenizer/added_token.h"

namespace espalier {

// `added_tokens` of tokenizer.json united with `added_tokens_decoder` of tokenizer_config.json (may be null), by ascending id. A token
// may stand in one of them or in both; definitions that contradict each other (same id or same content, anything else different) are
// errors. `name` names tokenizer.json in errors.
Result<std::vector<AddedToken>> read_added_tokens(const Json& tokenizer_json, const Json* tokenizer_config, std::string_view name);

}  // namespace espalier
