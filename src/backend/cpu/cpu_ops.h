// The ops of the CPU backend, one file each. An op splits its outputs over the threads of the pool and calls the kernel table; no
// sum is ever split, so the bits of a row depend on neither threads nor neighbours. Rows are computed when the call returns.
#pragma once

#include <memory>
#include <vector>

#include "backend/cpu/attention_plan.h"
#include "backend/cpu/float_mode.h"
#include "backend/cpu/kernels/kernel_table.h"
#include "backend/cpu/rotary.h"
#include "backend/cpu/scratch.h"
#include "base/thread_pool.h"
#include "ops/ops.h"

namespace espalier::cpu {

class CpuOps final : public Ops {
 public:
  CpuOps(const KernelTable& table, int num_threads);

  const KernelTable& table() const { return table_; }
  ThreadPool& pool() { return pool_; }

  void embed(const EmbedArgs& args) override;
  void rms_norm(const RmsNormArgs& args) override;
  void linear(const LinearArgs& args) override;
  void attention_input(const AttentionInputArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void causal_conv(const CausalConvArgs& args) override;
  void gated_delta_rule(const GatedDeltaRuleArgs& args) override;
  void gated_norm(const GatedNormArgs& args) override;
  void silu_mul(const SiluMulArgs& args) override;
  void gather_rows(const GatherRowsArgs& args) override;
  void kv_compact(const KvCompactArgs& args) override;
  void copy(const CopyArgs& args) override;

 private:
  // fn(begin, end, thread) over [0, count) in pieces of at least `grain`: below it waking a thread costs more than the work.
  template <typename Fn>
  void for_ranges(int64_t count, int64_t grain, const Fn& fn) {
    const int64_t chunks = (count + grain - 1) / grain;
    pool_.parallel_for(chunks, [&](int64_t chunk, int thread) {
      const int64_t begin = chunk * grain;
      fn(begin, count - begin < grain ? count : begin + grain, thread);
    });
  }

  const KernelTable& table_;
  ThreadPool pool_;
  RotaryTable rotary_;
  AttentionPlan attention_plan_;
  std::vector<int32_t> tree_order_, tree_depth_, tree_links_;  // of gated_delta_rule
  Scratch shared_[4];                                          // whole-pass intermediates, numbered by each op
  std::vector<Scratch> per_thread_;
};

}  // namespace espalier::cpu
