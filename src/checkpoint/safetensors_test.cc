#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/format.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "safetensors_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name = "t.safetensors") const { return directory_ + "/" + name; }

 private:
  std::string directory_;
};

TEST_F(SafetensorsTest, WhatIsWrittenIsReadBack) {
  Tensor floats(DType::kF32, {2, 3});
  for (size_t i = 0; i < 6; ++i) floats.span<float>()[i] = static_cast<float>(i) * 0.5f;
  Tensor codes(DType::kU8, {5});
  std::memcpy(codes.as<uint8_t>(), "\x01\x02\x03\x04\x05", 5);
  Tensor scalar(DType::kBf16, {});
  const std::vector<NamedTensor> tensors = {
      {"floats", floats.view()}, {"codes", codes.view()}, {"scalar", scalar.view()}, {"empty", Tensor(DType::kF32, {0, 4}).view()}};
  const std::vector<std::pair<std::string, std::string>> metadata = {{"format", "pt"}, {"note", "Gr\xC3\xBC\xC3\x9F"}};
  const Status written = write_safetensors(path(), tensors, metadata);
  ASSERT_TRUE(written.ok()) << written.error().message;

  const Result<SafetensorsFile> file = SafetensorsFile::open(path());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->metadata(), metadata);
  EXPECT_EQ(file->tensors().size(), 4u);
  ASSERT_NE(file->find("floats"), nullptr);
  EXPECT_EQ(file->find("floats")->offset % 64, 0u);
  const ConstTensorView read = file->view(*file->find("floats"));
  EXPECT_EQ(read.shape, (Shape{2, 3}));
  EXPECT_EQ(std::memcmp(read.data, floats.view().data, 24), 0);
  EXPECT_EQ(file->view(*file->find("codes")).as<uint8_t>()[4], 5);
  EXPECT_EQ(file->view(*file->find("scalar")).shape, Shape{});
  EXPECT_EQ(file->view(*file->find("empty")).size_bytes(), 0u);
  EXPECT_EQ(file->find("absent"), nullptr);
}

TEST_F(SafetensorsTest, MisalignedDataIsReadAligned) {
  // An odd header length and an odd tensor before it: both shift the floats to an odd address.
  const std::string header =
      R"({"odd":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"f":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}} )";
  const uint64_t header_bytes = header.size();
  std::string file(reinterpret_cast<const char*>(&header_bytes), 8);
  file += header + "x";
  const float values[2] = {1.25f, -3.0f};
  file.append(reinterpret_cast<const char*>(values), 8);
  ASSERT_NE((8 + header.size() + 1) % 4, 0u);
  ASSERT_TRUE(write_file_atomic(path(), file).ok());

  const Result<SafetensorsFile> opened = SafetensorsFile::open(path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const ConstTensorView view = opened->view(*opened->find("f"));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % alignof(float), 0u);
  EXPECT_EQ(view.as<float>()[0], 1.25f);
  EXPECT_EQ(view.as<float>()[1], -3.0f);
}

TEST_F(SafetensorsTest, ViewsOutliveAMoveOfTheFile) {
  Tensor tensor(DType::kF32, {4});
  tensor.span<float>()[3] = 7;
  ASSERT_TRUE(write_safetensors(path(), std::vector<NamedTensor>{{"t", tensor.view()}}).ok());
  Result<SafetensorsFile> file = SafetensorsFile::open(path());
  ASSERT_TRUE(file.ok());
  const ConstTensorView view = file->view(*file->find("t"));
  const SafetensorsFile moved = std::move(file).value();
  EXPECT_EQ(view.as<float>()[3], 7);
  ASSERT_NE(moved.find("t"), nullptr);
  EXPECT_EQ(moved.view(*moved.find("t")).data, view.data);
}

TEST_F(SafetensorsTest, DroppedPagesReadTheSameAgain) {
  Tensor tensor(DType::kF32, {64 * 1024});
  tensor.span<float>()[40000] = 9;
  ASSERT_TRUE(write_safetensors(path(), std::vector<NamedTensor>{{"t", tensor.view()}}).ok());
  const Result<SafetensorsFile> file = SafetensorsFile::open(path());
  ASSERT_TRUE(file.ok());
  file->drop(*file->find("t"));
  EXPECT_EQ(file->view(*file->find("t")).as<float>()[40000], 9);
}

TEST_F(SafetensorsTest, FilesThatAreNone) {
  const auto message = [](const std::string& file) {
    const Result<SafetensorsFile> opened = SafetensorsFile::open(file);
    return opened.ok() ? std::string("opened") : opened.error().message;
  };
  EXPECT_THAT(message(path("absent")), AllOf(HasSubstr("absent"), HasSubstr("No such file")));
  std::filesystem::create_directory(path("directory"));
  EXPECT_THAT(message(path("directory")), HasSubstr("not a regular file"));
  ASSERT_TRUE(write_file_atomic(path("nothing"), "").ok());
  EXPECT_THAT(message(path("nothing")), HasSubstr("found 0 bytes"));
}

TEST_F(SafetensorsTest, NamesThatCannotBeWritten) {
  const Tensor tensor(DType::kF32, {1});
  const std::string longest(513, 'n');
  for (const std::string& name : {std::string(), std::string("__metadata__"), longest}) {
    const Status written = write_safetensors(path(), std::vector<NamedTensor>{{name, tensor.view()}});
    ASSERT_FALSE(written.ok()) << name;
    EXPECT_EQ(written.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(write_safetensors(path(), std::vector<NamedTensor>{{"t", tensor.view()}, {"t", tensor.view()}}).ok());
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(SafetensorsTest, AFullDiskIsAnErrorThatNamesThePath) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "/dev/full is absent";
  const Tensor tensor(DType::kF32, {1});
  const Status written = write_safetensors("/dev/full", std::vector<NamedTensor>{{"t", tensor.view()}});
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, AllOf(HasSubstr("/dev/full"), HasSubstr("No space")));
}

}  // namespace
}  // namespace espalier
