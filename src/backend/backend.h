// A place where the model runs: its memory, its layout of weights, its ops. Made by the composition root; used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "ops/kv_layout.h"
#include "ops/ops.h"
#include "ops/state_layout.h"
#include "tensor/tensor.h"

namespace espalier {

// Memory of a backend: zeroed when first used, handed back piece by piece. `data()` is host memory on the CPU backends.
class BackendMemory {
 public:
  virtual ~BackendMemory() = default;
  virtual std::byte* data() const = 0;
  virtual size_t size_bytes() const = 0;
  // Bytes [offset, offset + length) are no longer needed and read as zero if used again; the system may take them back.
  virtual void discard(size_t offset, size_t length) = 0;
};

// What a model asks of a backend, checked once at load.
struct ModelNeeds {
  DType weight_dtype = DType::kBf16;
  int32_t head_dim = 0;
  int32_t key_head_dim = 0;    // of Gated DeltaNet; 0: no such layers
  int32_t value_head_dim = 0;
  int32_t conv_kernel = 0;
  DType kv_dtype = DType::kBf16;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;              // "reference", "cpu (avx512)"
  virtual DType activation_dtype() const = 0;        // F32 for reference, BF16 for cpu
  virtual DType default_kv_dtype() const = 0;
  virtual Status check(const ModelNeeds& needs) const = 0;

  // Reserves addresses; memory comes with use. Fails with kResourceExhausted where addresses cannot be had.
  virtual Result<std::unique_ptr<BackendMemory>> reserve(size_t bytes) = 0;
  // Takes a checkpoint tensor [n, k] (BF16, F16 or F32, possibly misaligned) into the private layout. The source may go afterwards.
  virtual std::unique_ptr<PreparedWeight> prepare_weight(const ConstTensorView& weight) = 0;
  // Bytes that prepare_weight would hold for an [n, k] matrix of that dtype: what `inspect` plans with.
  virtual size_t prepared_weight_bytes(int64_t n, int64_t k, DType dtype) const = 0;

  virtual Ops& ops() = 0;
  virtual void synchronize() = 0;  // returns when everything enqueued is done
};

}  // namespace espalier
