#include "model/weight_loader.h"

#include <cstring>

#include "checkpoint/model_tensors.h"
#include "tensor/codec.h"

namespace espalier {

Result<WeightLoader> WeightLoader::create(const Checkpoint& checkpoint, Backend& backend) {
  BackendArena counting;
  const auto count = [&](const std::vector<TensorSpec>& tensors) {
    for (const TensorSpec& spec : tensors) {
      if (spec.kind == TensorKind::kEmbedding || spec.shape.rank() != 2) counting.take(DType::kF32, spec.shape);
    }
  };
  count(trunk_tensors(checkpoint.config()));
  if (checkpoint.config().has_mtp) count(mtp_tensors(checkpoint.config()));
  WeightLoader loader(checkpoint, backend);
  ESPALIER_ASSIGN(loader.arena_, BackendArena::reserve(backend, counting.used_bytes()));
  return loader;
}

Result<std::unique_ptr<PreparedWeight>> WeightLoader::matrix(const std::string& name) {
  ESPALIER_ASSIGN(const ConstTensorView source, checkpoint_->tensor(name));
  std::unique_ptr<PreparedWeight> prepared = backend_->prepare_weight(source);
  checkpoint_->drop(name);
  matrix_bytes_ += prepared->size_bytes();
  return prepared;
}

Result<const float*> WeightLoader::vector(const std::string& name) {
  ESPALIER_ASSIGN(const ConstTensorView source, checkpoint_->tensor(name));
  const TensorView values = arena_.take(DType::kF32, source.shape);
  for (int64_t i = 0; i < source.shape.num_elements(); ++i) {
    values.as<float>()[i] = load_as_f32(source.data, source.dtype, static_cast<size_t>(i));
  }
  checkpoint_->drop(name);
  return static_cast<const float*>(values.as<float>());
}

Result<ConstTensorView> WeightLoader::table(const std::string& name) {
  ESPALIER_ASSIGN(const ConstTensorView source, checkpoint_->tensor(name));
  const TensorView values = arena_.take(source.dtype, source.shape);
  std::memcpy(values.data, source.data, source.size_bytes());
  checkpoint_->drop(name);
  return ConstTensorView(values);
}

}  // namespace espalier
