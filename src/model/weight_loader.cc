#include "model/weight_loader.h"

#include <cstring>
#include <vector>

#include "base/format.h"
#include "checkpoint/model_tensors.h"
#include "tensor/codec.h"

namespace espalier {

Result<WeightLoader> WeightLoader::create(const Checkpoint& checkpoint, Backend& backend, LoadProgress progress) {
  const ModelConfig& config = checkpoint.config();
  WeightLoader loader(checkpoint, backend, std::move(progress));
  std::vector<TensorSpec> tensors = trunk_tensors(config);
  if (config.has_mtp) {
    const std::vector<TensorSpec> mtp = mtp_tensors(config);
    tensors.insert(tensors.end(), mtp.begin(), mtp.end());
  }
  BackendArena counting;
  for (const TensorSpec& spec : tensors) {
    const bool embedding = spec.kind == TensorKind::kEmbedding;
    if (embedding || spec.shape.rank() != 2) counting.take(DType::kF32, spec.shape);
    ESPALIER_ASSIGN(const ConstTensorView source, checkpoint.tensor(spec.name));
    loader.source_bytes_ += source.size_bytes() * (embedding && config.tie_word_embeddings ? 2 : 1);  // a tied one is table and head
  }
  ESPALIER_ASSIGN(loader.arena_, BackendArena::reserve(backend, counting.used_bytes()));
  ESPALIER_TRY(loader.report());
  return loader;
}

Status WeightLoader::report() {
  if (progress_ && !progress_(static_cast<double>(taken_source_bytes_) / static_cast<double>(source_bytes_))) {
    return make_error(ErrorCode::kCancelled, "loading {} was cancelled", checkpoint_->directory());
  }
  return Ok{};
}

Status WeightLoader::took(const std::string& name, const ConstTensorView& source) {
  taken_source_bytes_ += source.size_bytes();
  checkpoint_->drop(name);
  return report();
}

Result<std::unique_ptr<PreparedWeight>> WeightLoader::matrix(const std::string& name) {
  ESPALIER_ASSIGN(const ConstTensorView source, checkpoint_->tensor(name));
  std::unique_ptr<PreparedWeight> prepared = backend_->prepare_weight(source);
  matrix_bytes_ += prepared->size_bytes();
  ESPALIER_TRY(took(name, source));
  return prepared;
}

Result<const float*> WeightLoader::vector(const std::string& name) {
  ESPALIER_ASSIGN(const ConstTensorView source, checkpoint_->tensor(name));
  const TensorView values = arena_.take(DType::kF32, source.shape);
  for (int64_t i = 0; i < source.shape.num_elements(); ++i) {
    values.as<float>()[i] = load_as_f32(source.data, source.dtype, static_cast<size_t>(i));
  }
  ESPALIER_TRY(took(name, source));
  return static_cast<const float*>(values.as<float>());
}

Result<ConstTensorView> WeightLoader::table(const std::string& name) {
  ESPALIER_ASSIGN(const ConstTensorView source, checkpoint_->tensor(name));
  const TensorView values = arena_.take(source.dtype, source.shape);
  std::memcpy(values.data, source.data, source.size_bytes());
  ESPALIER_TRY(took(name, source));
  return ConstTensorView(values);
}

}  // namespace espalier
