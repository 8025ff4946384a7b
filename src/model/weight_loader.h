// Brings the tensors of a checkpoint into a backend: matrices prepared, vectors as F32, tables as stored.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "model/backend_arena.h"

namespace espalier {

// Called on the loading thread before the first tensor and after each one, with the fraction (0 to 1) of the weights' bytes that is done.
// False ends the loading with kCancelled.
using LoadProgress = std::function<bool(double fraction)>;

// The checkpoint promises names and shapes, so what can fail is memory. Each tensor's file pages are let go once it is taken.
class WeightLoader {
 public:
  static Result<WeightLoader> create(const Checkpoint& checkpoint, Backend& backend, LoadProgress progress);

  Result<std::unique_ptr<PreparedWeight>> matrix(const std::string& name);
  Result<const float*> vector(const std::string& name);  // any shape, flattened; lives in the arena
  Result<ConstTensorView> table(const std::string& name);

  size_t matrix_bytes() const { return matrix_bytes_; }  // of all matrices prepared so far
  // The memory behind vectors and tables; to be kept by the model.
  BackendArena release_arena() { return std::move(arena_); }

 private:
  WeightLoader(const Checkpoint& checkpoint, Backend& backend, LoadProgress progress)
      : checkpoint_(&checkpoint), backend_(&backend), progress_(std::move(progress)) {}
  Status took(const std::string& name, const ConstTensorView& source);
  Status report();

  const Checkpoint* checkpoint_;
  Backend* backend_;
  LoadProgress progress_;
  size_t source_bytes_ = 0;        // of all tensors, each as often as it is taken
  size_t taken_source_bytes_ = 0;
  BackendArena arena_;
  size_t matrix_bytes_ = 0;
};

}  // namespace espalier
