// One sequence through the model in chunks, every row's logits seen: what `logits` and `score` need. No cache, no sampling.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "base/token_id.h"
#include "checkpoint/checkpoint.h"
#include "model/causal_lm.h"

namespace espalier {

class ForwardRunner {
 public:
  static constexpr int32_t kChunk = 64;

  // Room for `max_tokens`. The backend must outlive the runner.
  static Result<ForwardRunner> create(const Checkpoint& checkpoint, Backend& backend, int32_t max_tokens);

  // Appends the tokens to the sequence; `see(first, logits)` gets rows [first, first + rows) as [rows, vocab_rows] F32, chunk by chunk.
  void run(std::span<const TokenId> tokens, const std::function<void(int32_t first, const ConstTensorView& logits)>& see,
           HiddenObserver* observer = nullptr);

  const ModelConfig& config() const { return model_->config(); }

 private:
  ForwardRunner() = default;
  std::unique_ptr<CausalLm> model_;
  KvLayout kv_layout_;
  std::unique_ptr<BackendMemory> kv_memory_;
  std::unique_ptr<BackendMemory> state_memory_;
  std::vector<int32_t> pages_;
  int32_t committed_ = 0;
  ForwardBatch batch_;
};

}  // namespace espalier
