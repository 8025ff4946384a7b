// A rule about which tokens may come next (a forced opener, later a grammar). Copyable through `clone`, so that every node of a draft
// tree can carry its own.
#pragma once

#include <memory>
#include <span>

#include "base/token_id.h"

namespace espalier {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  virtual std::unique_ptr<TokenConstraint> clone() const = 0;
  // Sets the logits of forbidden tokens to -infinity. At least one token stays allowed.
  virtual void mask(std::span<float> logits) const = 0;
  // The token was chosen.
  virtual void advance(TokenId token) = 0;
};

}  // namespace espalier
