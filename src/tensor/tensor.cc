#include "tensor/tensor.h"

#include "base/format.h"
#include "tensor/codec.h"

namespace espalier {

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += format("{}{}", i == 0 ? "" : ", ", (*this)[i]);
  return text + "]";
}

namespace {

Shape sliced(const Shape& shape, int64_t begin, int64_t count) {
  ESPALIER_CHECK(shape.rank() > 0 && begin >= 0 && count >= 0 && begin + count <= shape[0]);
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int i = 0; i < shape.rank(); ++i) dims[static_cast<size_t>(i)] = i == 0 ? count : shape[i];
  return Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(shape.rank())));
}

size_t row_bytes(const Shape& shape, DType dtype) {
  size_t bytes = dtype_size(dtype);
  for (int i = 1; i < shape.rank(); ++i) bytes *= static_cast<size_t>(shape[i]);
  return bytes;
}

}  // namespace

TensorView TensorView::slice(int64_t begin, int64_t count) const {
  return {static_cast<std::byte*>(data) + static_cast<size_t>(begin) * row_bytes(shape, dtype), dtype, sliced(shape, begin, count)};
}

ConstTensorView ConstTensorView::slice(int64_t begin, int64_t count) const {
  return {static_cast<const std::byte*>(data) + static_cast<size_t>(begin) * row_bytes(shape, dtype), dtype, sliced(shape, begin, count)};
}

Tensor to_f32(const ConstTensorView& source) {
  Tensor out(DType::kF32, source.shape);
  const std::span<float> to = out.span<float>();
  for (size_t i = 0; i < to.size(); ++i) to[i] = load_as_f32(source.data, source.dtype, i);
  return out;
}

}  // namespace espalier
