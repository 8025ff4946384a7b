#include "backend/cpu/cpu_ops.h"

namespace espalier::cpu {

CpuOps::CpuOps(const KernelTable& table, int num_threads)
    : table_(table), pool_(num_threads, enter_op_float_mode), per_thread_(static_cast<size_t>(num_threads)) {}

}  // namespace espalier::cpu
