#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"

namespace espalier {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Error system_error(const std::string& path, const char* what) {
  const int number = errno;
  return make_error(number == ENOENT || number == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo, "{}: {}: {}", path, what, std::strerror(number));
}

// Opening for reading does not wait for a writer where the path turns out to be a pipe.
FileDescriptor open_to_read(const std::string& path) { return FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); }

// How long a file just opened is; only regular files are read.
Result<size_t> regular_file_size(const FileDescriptor& file, const std::string& path) {
  if (file.get() < 0) return system_error(path, "cannot open");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error(path, "cannot stat");
  if (!S_ISREG(info.st_mode)) return make_error(ErrorCode::kInvalidArgument, "{}: not a regular file", path);
  return static_cast<size_t>(info.st_size);
}

Status write_all(const FileDescriptor& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(path, "cannot write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) return system_error(path, "cannot sync");
  return Ok{};
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  const FileDescriptor file = open_to_read(path);
  ESPALIER_ASSIGN(const size_t size, regular_file_size(file, path));
  if (size > max_bytes) return make_error(ErrorCode::kResourceExhausted, "{}: {} bytes exceed the limit of {}", path, size, max_bytes);
  std::string text;
  char block[1 << 16];
  text.reserve(size);
  while (true) {  // to the end rather than `size` bytes: files of /proc and /sys do not say how long they are
    const ssize_t got = ::read(file.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, "cannot read");
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
    if (text.size() > max_bytes) return make_error(ErrorCode::kResourceExhausted, "{}: more than the limit of {} bytes", path, max_bytes);
  }
}

Status write_file_atomic(const std::string& path, std::string_view bytes) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {  // a device such as /dev/full or a pipe is written to directly
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) return system_error(path, "cannot open");
    return write_all(file, bytes, path);
  }
  const std::string temporary = format("{}.{}.tmp", path, ::getpid());
  Status written = Ok{};
  {
    const FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return system_error(path, "cannot create");
    written = write_all(file, bytes, path);
  }
  if (written.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) written = system_error(path, "cannot rename into place");
  if (!written.ok()) ::unlink(temporary.c_str());
  return written;
}

Status check_writable(const std::string& path) {
  const std::string temporary = format("{}.{}.tmp", path, ::getpid());
  const FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) return system_error(path, "cannot create");
  ::unlink(temporary.c_str());
  return Ok{};
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const FileDescriptor file = open_to_read(path);
  ESPALIER_ASSIGN(const size_t size, regular_file_size(file, path));
  MappedFile mapped;
  mapped.path_ = path;
  mapped.size_ = size;
  if (size == 0) return mapped;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return system_error(path, "cannot map");
  mapped.data_ = data;
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MappedFile::drop(size_t offset, size_t length) const {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + length) / page * page;
  if (data_ != nullptr && begin < end && end <= size_) ::madvise(static_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace espalier
