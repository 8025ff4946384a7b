#include "checkpoint/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>

#include "base/format.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string file_with(const std::string& header, size_t data_bytes) {
  const uint64_t header_bytes = header.size();
  std::string file(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
  return file + header + std::string(data_bytes, 'x');
}

Result<SafetensorsHeader> parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), file.size(), "weights");
}

// The message of a file that must be refused; one line that begins with the file's name.
std::string failure(const std::string& file, ErrorCode code = ErrorCode::kCorrupt) {
  const Result<SafetensorsHeader> parsed = parse(file);
  EXPECT_FALSE(parsed.ok()) << file;
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.error().code, code) << parsed.error().message;
  EXPECT_THAT(parsed.error().message, AllOf(StartsWith("weights: "), Not(HasSubstr("\n"))));
  return parsed.error().message;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

std::string object(std::initializer_list<std::string> members) {
  std::string text = "{";
  for (const std::string& member : members) {
    if (text.size() > 1) text += ',';
    text += member;
  }
  return text += '}';
}

TEST(SafetensorsHeader, TensorsComeInTheOrderOfTheirData) {
  const std::string header =
      object({entry("b", "F32", "[2,3]", "[4,28]"), entry("a", "BF16", "[2]", "[0,4]"), R"("__metadata__":{"format":"pt"})"}) + "  ";
  const Result<SafetensorsHeader> parsed = parse(file_with(header, 28));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->tensors.size(), 2u);
  EXPECT_EQ(parsed->tensors[0].name, "a");
  EXPECT_EQ(parsed->tensors[0].offset, 8 + header.size());
  EXPECT_EQ(parsed->tensors[0].size_bytes, 4u);
  EXPECT_EQ(parsed->tensors[1].name, "b");
  EXPECT_EQ(parsed->tensors[1].dtype, DType::kF32);
  EXPECT_EQ(parsed->tensors[1].shape, (Shape{2, 3}));
  EXPECT_EQ(parsed->tensors[1].offset, 8 + header.size() + 4);
  EXPECT_THAT(parsed->metadata, ElementsAre(std::pair<std::string, std::string>("format", "pt")));
}

TEST(SafetensorsHeader, ScalarsAndEmptyTensorsAreTensors) {
  const std::string header = object({entry("scalar", "F32", "[]", "[0,4]"), entry("empty", "F32", "[0,7]", "[0,0]")});
  const Result<SafetensorsHeader> parsed = parse(file_with(header, 4));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->tensors.size(), 2u);
}

TEST(SafetensorsHeader, AFileWithoutTensorsIsValid) { EXPECT_TRUE(parse(file_with("{}", 0)).ok()); }

TEST(SafetensorsHeader, TooShortForItsLength) {
  EXPECT_THAT(failure(""), HasSubstr("found 0 bytes"));
  EXPECT_THAT(failure("1234567"), HasSubstr("found 7 bytes"));
}

TEST(SafetensorsHeader, AbsurdHeaderLength) {
  EXPECT_THAT(failure("GGUF\x03\x01\x01\x01 and some more"), HasSubstr("exceeds the limit of 104857600"));
  std::string file = file_with("{}", 0);
  std::memset(file.data(), 0xff, 8);
  EXPECT_THAT(failure(file), HasSubstr("a header of 18446744073709551615 bytes exceeds"));
}

TEST(SafetensorsHeader, HeaderCutShort) {
  const std::string file = file_with(object({entry("a", "F32", "[1]", "[0,4]")}), 4);
  EXPECT_THAT(failure(file.substr(0, 30)), HasSubstr("truncated: expected a header of"));
}

TEST(SafetensorsHeader, GarbageIsNotAHeader) {
  EXPECT_THAT(failure(file_with("{\"a\":\x01\x02", 4)), HasSubstr("header: not valid JSON"));
  EXPECT_THAT(failure(file_with("[1,2]", 0)), HasSubstr("expected an object, found [1,2]"));
  EXPECT_THAT(failure(file_with(std::string(100000, '['), 0)), HasSubstr("nested deeper"));
  EXPECT_THAT(failure(file_with("", 8)), HasSubstr("not valid JSON"));
}

TEST(SafetensorsHeader, TruncatedByAByteOrATensor) {
  const std::string file = file_with(object({entry("a", "F32", "[2]", "[0,8]"), entry("b", "F32", "[2]", "[8,16]")}), 16);
  ASSERT_TRUE(parse(file).ok());
  EXPECT_THAT(failure(file.substr(0, file.size() - 1)),
              AllOf(HasSubstr("truncated"), HasSubstr("\"b\""), HasSubstr("1 bytes after the end")));
  EXPECT_THAT(failure(file.substr(0, file.size() - 8)),
              AllOf(HasSubstr("truncated"), HasSubstr("\"b\""), HasSubstr("8 bytes after the end")));
}

TEST(SafetensorsHeader, JunkAfterTheLastTensor) {
  const std::string file = file_with(object({entry("a", "F32", "[2]", "[0,8]")}), 8);
  EXPECT_THAT(failure(file + "z"), HasSubstr(format("expected {} bytes (header and all tensors), found {}", file.size(), file.size() + 1)));
}

TEST(SafetensorsHeader, DuplicateNames) {
  const std::string header = object({entry("twice", "F32", "[1]", "[0,4]"), entry("twice", "F32", "[1]", "[4,8]")});
  EXPECT_THAT(failure(file_with(header, 8)), HasSubstr("'twice' occurs twice"));
}

TEST(SafetensorsHeader, OverlapsAndGaps) {
  EXPECT_THAT(failure(file_with(object({entry("a", "F32", "[2]", "[0,8]"), entry("b", "F32", "[2]", "[4,12]")}), 12)),
              HasSubstr("tensor \"b\" overlaps the one before: expected its data at offset 8, found 4"));
  EXPECT_THAT(failure(file_with(object({entry("a", "F32", "[2]", "[0,8]"), entry("b", "F32", "[2]", "[12,20]")}), 20)),
              HasSubstr("tensor \"b\" leaves a gap: expected its data at offset 8, found 12"));
}

TEST(SafetensorsHeader, ShapeContradictsItsBytes) {
  EXPECT_THAT(failure(file_with(object({entry("a", "BF16", "[3,5]", "[0,8]")}), 8)),
              HasSubstr("tensor \"a\": BF16 [3, 5] takes 30 bytes, found 8"));
}

TEST(SafetensorsHeader, ProductsThatOverflowAreRefusedNotWrapped) {
  // 2^32 x 2^32 x 4 bytes wraps to 0.
  EXPECT_THAT(failure(file_with(object({entry("a", "F32", "[4294967296,4294967296]", "[0,0]")}), 0)),
              HasSubstr("has more than 2^63 bytes"));
  EXPECT_THAT(failure(file_with(object({entry("a", "U8", "[9223372036854775807,2,0]", "[0,0]")}), 0)), HasSubstr("tensor \"a\""));
  EXPECT_THAT(failure(file_with(object({entry("a", "U8", "[9223372036854775808]", "[0,0]")}), 0)), HasSubstr("a dimension must be"));
}

TEST(SafetensorsHeader, OffsetsBeyondTheFile) {
  EXPECT_THAT(failure(file_with(object({entry("a", "U8", "[9223372036854775807]", "[0,9223372036854775807]")}), 4)),
              AllOf(HasSubstr("truncated"), HasSubstr("\"a\"")));
  EXPECT_THAT(failure(file_with(object({entry("a", "U8", "[1]", "[18446744073709551614,18446744073709551615]")}), 4)),
              HasSubstr("expected its data at offset 0, found 18446744073709551614"));
}

TEST(SafetensorsHeader, UnknownDtypeIsNamedWithItsTensor) {
  EXPECT_THAT(failure(file_with(object({entry("w", "F7_E9", "[1]", "[0,1]")}), 1), ErrorCode::kUnsupported),
              HasSubstr("tensor \"w\": dtype \"F7_E9\" is not known"));
}

TEST(SafetensorsHeader, TooManyDimensions) {
  EXPECT_THAT(failure(file_with(object({entry("w", "U8", "[1,1,1,1,1,1]", "[0,1]")}), 1), ErrorCode::kUnsupported),
              HasSubstr("rank 6 exceeds"));
}

TEST(SafetensorsHeader, NamesAreShortAndPrintable) {
  EXPECT_THAT(failure(file_with(object({entry("", "U8", "[1]", "[0,1]")}), 1)), HasSubstr("a name has 1 to 512 bytes, this one 0"));
  EXPECT_THAT(failure(file_with(object({entry(std::string(600, 'n'), "U8", "[1]", "[0,1]")}), 1)), HasSubstr("this one 600"));
  EXPECT_THAT(failure(file_with(object({entry("two\\nlines", "U8", "[1]", "[0,1]")}), 1)), HasSubstr("control characters"));
}

struct Malformed {
  const char* name;
  const char* header;
  const char* expected;
};

class MalformedEntry : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedEntry, IsNamed) { EXPECT_THAT(failure(file_with(GetParam().header, 4)), HasSubstr(GetParam().expected)); }

INSTANTIATE_TEST_SUITE_P(
    SafetensorsHeader, MalformedEntry,
    ::testing::Values(
        Malformed{"not_an_object", R"({"a":7})", "tensor \"a\": expected an object, found 7"},
        Malformed{"no_dtype", R"({"a":{"shape":[1],"data_offsets":[0,4]}})", "'dtype' must be a string, found none"},
        Malformed{"dtype_number", R"({"a":{"dtype":3,"shape":[1],"data_offsets":[0,4]}})", "'dtype' must be a string, found 3"},
        Malformed{"no_shape", R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", "'shape' must be an array, found none"},
        Malformed{"negative_dimension", R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "a dimension must be an integer"},
        Malformed{"fractional_dimension", R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", "found 1.5"},
        Malformed{"no_offsets", R"({"a":{"dtype":"F32","shape":[1]}})", "'data_offsets' must be [begin, end]"},
        Malformed{"offsets_reversed", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "found [4,0]"},
        Malformed{"negative_offset", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", "found [-4,0]"},
        Malformed{"one_offset", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", "found [4]"},
        Malformed{"metadata_number", R"({"__metadata__":{"n":5}})", "'__metadata__' \"n\" must be a string, found 5"},
        Malformed{"metadata_list", R"({"__metadata__":[]})", "'__metadata__' must be an object"}),
    [](const auto& malformed) { return malformed.param.name; });

}  // namespace
}  // namespace espalier
