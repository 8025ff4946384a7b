#include "cli/forward_runner.h"

#include <algorithm>
#include <numeric>

namespace espalier {

Result<ForwardRunner> ForwardRunner::create(const Checkpoint& checkpoint, Backend& backend, int32_t max_tokens) {
  ForwardRunner runner;
  ESPALIER_ASSIGN(runner.model_, CausalLm::load(checkpoint, backend, {.max_rows = kChunk, .max_outputs = kChunk, .max_uncommitted_rows = 0}));
  constexpr int32_t kPageSize = 64;
  runner.kv_layout_ = runner.model_->kv_layout(backend.default_kv_dtype(), kPageSize);
  runner.pages_.resize(static_cast<size_t>((max_tokens + kPageSize - 1) / kPageSize));
  std::iota(runner.pages_.begin(), runner.pages_.end(), 0);
  ESPALIER_ASSIGN(runner.kv_memory_, backend.reserve(runner.pages_.size() * runner.kv_layout_.page_bytes()));
  ESPALIER_ASSIGN(runner.state_memory_, backend.reserve(runner.model_->state_layout().slot_bytes()));
  return runner;
}

void ForwardRunner::run(std::span<const TokenId> tokens, const std::function<void(int32_t, const ConstTensorView&)>& see,
                        HiddenObserver* observer) {
  std::vector<int32_t> outputs(kChunk);
  std::iota(outputs.begin(), outputs.end(), 0);
  const KvView kv{kv_memory_->data(), kv_layout_};
  const StateView state{state_memory_->data(), model_->state_layout()};
  for (size_t begin = 0; begin < tokens.size(); begin += kChunk) {
    const std::span<const TokenId> chunk = tokens.subspan(begin, std::min<size_t>(kChunk, tokens.size() - begin));
    batch_.clear();
    batch_.add({.tokens = chunk,
                .base = committed_,
                .state_slot = 0,
                .page_table = pages_,
                .keep = Keep::kAll,
                .output_rows = std::span<const int32_t>(outputs).first(chunk.size())});
    const ConstTensorView logits = model_->forward(batch_, kv, state, observer);
    see(committed_, logits);
    committed_ += static_cast<int32_t>(chunk.size());
  }
}

}  // namespace espalier
