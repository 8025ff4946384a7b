#include "cache/sequence_state.h"

#include "base/result.h"

namespace espalier {

void SequenceState::commit(std::span<const TokenId> tokens) {
  ESPALIER_CHECK(tokens_.size() + tokens.size() <= pages_.size() * static_cast<size_t>(page_size_));
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

}  // namespace espalier
