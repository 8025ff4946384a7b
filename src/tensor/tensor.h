// Shapes, borrowed views and owning tensors: dense, row-major, little endian. A view never owns; whoever made it keeps the memory alive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/aligned_buffer.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace espalier {

// Up to five dimensions, all >= 0. A default Shape is a scalar (rank 0, one element).
class Shape {
 public:
  static constexpr int kMaxRank = 5;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
    ESPALIER_CHECK(dims.size() <= kMaxRank);
    for (size_t i = 0; i < dims.size(); ++i) dims_[i] = dims[i];
  }

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t num_elements() const {
    int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= dims_[static_cast<size_t>(i)];
    return product;
  }
  bool operator==(const Shape&) const = default;
  std::string to_string() const;  // "[2, 3]"

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  int64_t rows() const { return shape.rank() == 0 ? 1 : shape[0]; }
  size_t size_bytes() const { return static_cast<size_t>(shape.num_elements()) * dtype_size(dtype); }
  template <typename T> T* as() const { return static_cast<T*>(data); }
  // Rows [begin, begin + count) of the first dimension.
  TensorView slice(int64_t begin, int64_t count) const;
};

struct ConstTensorView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  ConstTensorView() = default;
  ConstTensorView(const void* d, DType t, const Shape& s) : data(d), dtype(t), shape(s) {}
  ConstTensorView(const TensorView& view) : data(view.data), dtype(view.dtype), shape(view.shape) {}  // NOLINT(google-explicit-constructor)

  int64_t rows() const { return shape.rank() == 0 ? 1 : shape[0]; }
  size_t size_bytes() const { return static_cast<size_t>(shape.num_elements()) * dtype_size(dtype); }
  template <typename T> const T* as() const { return static_cast<const T*>(data); }
  ConstTensorView slice(int64_t begin, int64_t count) const;
};

// Owns 64-byte aligned, zeroed host memory.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, const Shape& shape)
      : buffer_(static_cast<size_t>(shape.num_elements()) * dtype_size(dtype)), view_{buffer_.data(), dtype, shape} {}

  TensorView view() { return view_; }
  ConstTensorView view() const { return view_; }
  DType dtype() const { return view_.dtype; }
  const Shape& shape() const { return view_.shape; }
  template <typename T> T* as() { return view_.as<T>(); }
  template <typename T> const T* as() const { return view_.as<T>(); }
  template <typename T> std::span<T> span() { return {view_.as<T>(), static_cast<size_t>(view_.shape.num_elements())}; }
  template <typename T> std::span<const T> span() const { return {view_.as<T>(), static_cast<size_t>(view_.shape.num_elements())}; }

 private:
  AlignedBuffer buffer_;
  TensorView view_;
};

// A new F32 tensor of the same shape. The dtype must be F32, BF16, F16 or F8_E4M3.
Tensor to_f32(const ConstTensorView& source);

}  // namespace espalier
