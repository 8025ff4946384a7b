#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kNoLimit = size_t{1} << 30;

class File : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "espalier_file_test_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  size_t files_in_folder() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }

  std::string folder_;
};

TEST_F(File, WhatWasWrittenIsRead) {
  const std::string bytes("a\0b\r\n\xff", 6);
  ASSERT_TRUE(write_file_atomic(path("f"), bytes).ok());
  EXPECT_EQ(read_file(path("f"), kNoLimit).value(), bytes);
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(File, EmptyFileIsRead) {
  ASSERT_TRUE(write_file_atomic(path("f"), "").ok());
  EXPECT_EQ(read_file(path("f"), kNoLimit).value(), "");
}

TEST_F(File, FileOfSeveralBlocksIsReadWhole) {
  std::string bytes(200001, 'x');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 >> 4);
  ASSERT_TRUE(write_file_atomic(path("f"), bytes).ok());
  EXPECT_EQ(read_file(path("f"), bytes.size()).value(), bytes);
}

TEST_F(File, ReadLimitIsExact) {
  ASSERT_TRUE(write_file_atomic(path("f"), "12345").ok());
  EXPECT_TRUE(read_file(path("f"), 5).ok());
  const Result<std::string> refused = read_file(path("f"), 4);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.error().message, AllOf(StartsWith(path("f")), HasSubstr("5 bytes"), HasSubstr("limit of 4")));
}

TEST_F(File, FileThatDoesNotSayItsSizeIsReadToItsEnd) {
  EXPECT_THAT(read_file("/proc/self/status", kNoLimit).value(), HasSubstr("Name:"));
  EXPECT_EQ(read_file("/proc/self/status", 10).error().code, ErrorCode::kResourceExhausted);
}

TEST_F(File, MissingFileOrFolderIsNotFound) {
  EXPECT_EQ(read_file(path("none"), kNoLimit).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(read_file(path("none"), kNoLimit).error().message, AllOf(StartsWith(path("none")), HasSubstr("No such file")));
  EXPECT_EQ(read_file("", kNoLimit).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(write_file_atomic(path("f"), "x").ok());
  EXPECT_EQ(read_file(path("f/below_a_file"), kNoLimit).error().code, ErrorCode::kNotFound);
}

TEST_F(File, FoldersDevicesAndPipesAreNotRead) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& not_a_file : {folder_, std::string("/dev/zero"), path("pipe")}) {
    EXPECT_EQ(read_file(not_a_file, kNoLimit).error().code, ErrorCode::kInvalidArgument) << not_a_file;
    EXPECT_EQ(MappedFile::open(not_a_file).error().message, not_a_file + ": not a regular file");
  }
}

TEST_F(File, WritingReplacesTheOldFile) {
  ASSERT_TRUE(write_file_atomic(path("f"), "a longer old text").ok());
  ASSERT_TRUE(write_file_atomic(path("f"), "new").ok());
  EXPECT_EQ(read_file(path("f"), kNoLimit).value(), "new");
}

TEST_F(File, WritingIntoAMissingFolderNamesThePath) {
  const Status status = write_file_atomic(path("no/such/f"), "x");
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(status.error().message, StartsWith(path("no/such/f")));
}

TEST_F(File, WritingOntoAFolderFailsAndLeavesNothingBehind) {
  std::filesystem::create_directory(path("d"));
  EXPECT_EQ(write_file_atomic(path("d"), "x").error().code, ErrorCode::kIo);
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(File, FullDiskIsAnError) {
  const Status status = write_file_atomic("/dev/full", "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_EQ(status.error().message, "/dev/full: cannot write: No space left on device");
}

TEST_F(File, DeviceIsWrittenToAndNotReplaced) {
  EXPECT_TRUE(write_file_atomic("/dev/null", "x").ok());
  struct stat info {};
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST_F(File, MappedFileShowsTheBytesAndMoves) {
  ASSERT_TRUE(write_file_atomic(path("f"), "hello").ok());
  MappedFile first = MappedFile::open(path("f")).value();
  const MappedFile second = std::move(first);
  ASSERT_EQ(second.bytes().size(), 5u);
  EXPECT_EQ(std::memcmp(second.bytes().data(), "hello", 5), 0);
  EXPECT_EQ(second.path(), path("f"));
  EXPECT_EQ(first.bytes().size(), 0u);
}

TEST_F(File, MappingOutlivesTheName) {
  ASSERT_TRUE(write_file_atomic(path("f"), "hello").ok());
  const MappedFile mapped = MappedFile::open(path("f")).value();
  ASSERT_TRUE(write_file_atomic(path("f"), "other bytes").ok());
  EXPECT_EQ(std::memcmp(mapped.bytes().data(), "hello", 5), 0);
}

TEST_F(File, EmptyFileMapsToNoBytes) {
  ASSERT_TRUE(write_file_atomic(path("f"), "").ok());
  EXPECT_TRUE(MappedFile::open(path("f")).value().bytes().empty());
}

TEST_F(File, MissingFileDoesNotMap) { EXPECT_EQ(MappedFile::open(path("none")).error().code, ErrorCode::kNotFound); }

TEST_F(File, DroppedPagesReadTheSameAgain) {
  const std::string bytes(5 * 4096 + 17, 'q');
  ASSERT_TRUE(write_file_atomic(path("f"), bytes).ok());
  const MappedFile mapped = MappedFile::open(path("f")).value();
  mapped.drop(100, 3 * 4096);
  mapped.drop(0, bytes.size());
  mapped.drop(bytes.size() + 4096, 4096);  // outside: ignored
  EXPECT_EQ(std::memcmp(mapped.bytes().data(), bytes.data(), bytes.size()), 0);
}

}  // namespace
}  // namespace espalier
