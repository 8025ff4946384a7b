// Random changes to byte strings, for the fuzz driver. Deterministic for a seed. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::fuzz {

class Mutator {
 public:
  Mutator(uint64_t seed, size_t max_bytes) : random_(seed), max_bytes_(max_bytes) {}

  // Applies one to sixteen random changes to `input`; blocks and whole tails may come from `others`. At most max_bytes remain.
  std::string mutate(std::string_view input, const std::vector<std::string>& others);
  size_t below(size_t limit) { return limit == 0 ? 0 : std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

 private:
  void change_once(std::string& bytes, const std::vector<std::string>& others);
  void flip_bit(std::string& bytes);
  void replace_byte(std::string& bytes);
  void insert_bytes(std::string& bytes);
  void erase_block(std::string& bytes);
  void copy_block(std::string& bytes);
  void repeat_block(std::string& bytes);
  void write_integer(std::string& bytes);
  void change_number(std::string& bytes);
  void truncate(std::string& bytes);
  void cross_over(std::string& bytes, const std::vector<std::string>& others);
  void insert_from(std::string& bytes, const std::vector<std::string>& others);

  std::mt19937_64 random_;
  size_t max_bytes_;
};

}  // namespace espalier::fuzz
