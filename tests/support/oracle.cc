#include "tests/support/oracle.h"

#include <openssl/evp.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/file.h"

namespace espalier::testing {

std::string shared_path(const std::string& relative) { return std::string(ESPALIER_SHARED_DIR) + "/" + relative; }

bool shared_available() {
  struct stat info {};
  return ::stat(shared_path("oracle").c_str(), &info) == 0;
}

std::vector<Json> read_jsonl(const std::string& path) {
  const std::string text = read_file(path, size_t{1} << 30).value();
  std::vector<Json> rows;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    if (end > begin) rows.push_back(parse_json(std::string_view(text).substr(begin, end - begin), path).value());
    begin = end + 1;
  }
  return rows;
}

std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr);
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

std::string read_gzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  ESPALIER_CHECK(file != nullptr);
  std::string text;
  char buffer[1 << 16];
  for (int got; (got = gzread(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(got));
  gzclose(file);
  return text;
}

}  // namespace espalier::testing
