// A reply that has to begin with one of a few strings: the name of one of the declared tools, say, and what ends it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sampling/token_constraint.h"
#include "tokenizer/tokenizer.h"

namespace espalier {

// Allows the tokens whose bytes continue one of `choices`, however they cut it, until the text is one of them; from then on everything. So a
// choice that begins another one ends the rule first: choices should end alike ("name>\n"). No special token is allowed before that, for
// it has no text. Null without choices, or with an empty one: there is nothing to restrict. The tokenizer must outlive it.
std::shared_ptr<const TokenConstraint> make_choice_constraint(const Tokenizer& tokenizer, std::vector<std::string> choices);

}  // namespace espalier
