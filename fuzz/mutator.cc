#include "fuzz/mutator.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace espalier::fuzz {
namespace {

constexpr size_t kMaxBlock = 64;      // bytes moved, erased or repeated at once, mostly
constexpr size_t kMaxRepeats = 2000;  // of a short block: reaches depth and length limits

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string Mutator::mutate(std::string_view input, const std::vector<std::string>& others) {
  std::string bytes(input.substr(0, max_bytes_));
  const size_t changes = size_t{1} << below(5);
  for (size_t i = 0; i < changes; ++i) change_once(bytes, others);
  return bytes;
}

void Mutator::change_once(std::string& bytes, const std::vector<std::string>& others) {
  switch (below(11)) {
    case 0: flip_bit(bytes); break;
    case 1: replace_byte(bytes); break;
    case 2: insert_bytes(bytes); break;
    case 3: erase_block(bytes); break;
    case 4: copy_block(bytes); break;
    case 5: repeat_block(bytes); break;
    case 6: write_integer(bytes); break;
    case 7: change_number(bytes); break;
    case 8: truncate(bytes); break;
    case 9: cross_over(bytes, others); break;
    default: insert_from(bytes, others); break;
  }
  if (bytes.size() > max_bytes_) bytes.resize(max_bytes_);
}

void Mutator::flip_bit(std::string& bytes) {
  if (bytes.empty()) return;
  char& byte = bytes[below(bytes.size())];
  byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1u << below(8)));
}

void Mutator::replace_byte(std::string& bytes) {
  // Half of the time a character that means something to a parser.
  static constexpr char kTelling[] = "\0\x01\n\r\t \"'\\/{}[]()<>,:;%#|&=.+-09eE\x7f\x80\xbf\xc0\xe2\xed\xf0\xf4\xff";
  if (bytes.empty()) return;
  bytes[below(bytes.size())] = below(2) == 0 ? kTelling[below(sizeof kTelling - 1)] : static_cast<char>(below(256));
}

void Mutator::insert_bytes(std::string& bytes) {
  const size_t count = 1 + below(8);
  const char byte = static_cast<char>(below(256));
  bytes.insert(below(bytes.size() + 1), count, byte);
}

void Mutator::erase_block(std::string& bytes) {
  if (bytes.empty()) return;
  bytes.erase(below(bytes.size()), 1 + below(kMaxBlock));
}

void Mutator::copy_block(std::string& bytes) {
  if (bytes.empty()) return;
  const std::string block = bytes.substr(below(bytes.size()), 1 + below(kMaxBlock));
  const size_t to = below(bytes.size() + 1);
  if (below(2) == 0) {
    bytes.insert(to, block);
  } else {
    bytes.replace(to, block.size(), block);
  }
}

void Mutator::repeat_block(std::string& bytes) {
  if (bytes.empty()) return;
  const std::string block = bytes.substr(below(bytes.size()), 1 + below(4));
  std::string repeated;
  for (size_t left = below(below(8) == 0 ? kMaxRepeats : 16); left > 0; --left) repeated += block;
  bytes.insert(below(bytes.size() + 1), repeated);
}

void Mutator::write_integer(std::string& bytes) {
  static constexpr uint64_t kValues[] = {0,          1,          0x7F,       0x80,       0xFF,       0x7FFF,           0x8000,
                                         0xFFFF,     0x10000,    0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, uint64_t{1} << 32, uint64_t{1} << 40,
                                         UINT64_MAX / 2, UINT64_MAX / 2 + 1, UINT64_MAX - 7, UINT64_MAX};
  const uint64_t value = kValues[below(std::size(kValues))];
  const size_t width = size_t{1} << below(4);
  if (bytes.size() < width) return;
  std::memcpy(bytes.data() + below(bytes.size() - width + 1), &value, width);  // little endian, as the formats we read
}

void Mutator::change_number(std::string& bytes) {
  static constexpr std::string_view kNumbers[] = {"0",          "-1",         "1",         "2147483648",  "4294967295",           "4294967296",
                                                  "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "1e308",
                                                  "1e999",      "-0.0",       "0.5",       "1E-400",      "00",                   "99999999999999999999999999"};
  const auto first = std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1)), bytes.end(), is_digit);
  if (first == bytes.end()) return;
  const auto last = std::find_if_not(first, bytes.end(), is_digit);
  const size_t position = static_cast<size_t>(first - bytes.begin());
  const size_t length = static_cast<size_t>(last - first);
  if (below(2) == 0) {
    bytes.replace(position, length, kNumbers[below(std::size(kNumbers))]);
  } else {
    bytes.insert(position + below(length + 1), 1 + below(4), static_cast<char>('0' + below(10)));
  }
}

void Mutator::truncate(std::string& bytes) {
  if (below(4) != 0) return;  // rarely: the rest of the input is lost to later changes
  bytes.resize(below(bytes.size() + 1));
}

void Mutator::cross_over(std::string& bytes, const std::vector<std::string>& others) {
  if (others.empty()) return;
  const std::string& other = others[below(others.size())];
  bytes.resize(below(bytes.size() + 1));
  bytes += std::string_view(other).substr(below(other.size() + 1));
}

void Mutator::insert_from(std::string& bytes, const std::vector<std::string>& others) {
  if (others.empty()) return;
  const std::string& other = others[below(others.size())];
  const std::string_view block = std::string_view(other).substr(below(other.size() + 1), 1 + below(kMaxBlock));
  bytes.insert(below(bytes.size() + 1), block);
}

}  // namespace espalier::fuzz
