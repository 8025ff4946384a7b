// Files from outside: whole-file reads with a limit, atomic writes, and read-only memory maps that own their mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espalier {

// Reads a regular file whole. Errors name the path: kNotFound, kIo, kResourceExhausted above `max_bytes`.
Result<std::string> read_file(const std::string& path, size_t max_bytes);

// Writes `bytes` to a temporary file beside `path`, syncs and renames: readers see the old file or the new one, never half of it.
// A full disk or a refused write leaves the old file untouched and names path and reason.
Status write_file_atomic(const std::string& path, std::string_view bytes);

// Whether write_file_atomic could create a file there now. Leaves nothing behind.
Status check_writable(const std::string& path);

// A regular file mapped read-only for its whole length. Move-only; unmaps on destruction. The mapping is valid while the object lives.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  const std::string& path() const { return path_; }
  // Tells the kernel that these bytes will not be read again (after packing): their pages may leave memory.
  void drop(size_t offset, size_t length) const;

 private:
  MappedFile() = default;
  void* data_ = nullptr;
  size_t size_ = 0;
  std::string path_;
};

}  // namespace espalier
