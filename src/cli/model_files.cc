#include "cli/model_files.h"

#include <cstdlib>
#include <filesystem>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "base/format.h"
#include "base/log.h"

namespace espalier {

Result<std::string> find_model(const std::string& asked_for) {
  if (!asked_for.empty()) return asked_for;
  if (const char* from_environment = std::getenv("ESPALIER_MODEL")) return std::string(from_environment);
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::string looked;
  for (const std::filesystem::path& base : {std::filesystem::path("."), program / "../..", program / "../share/espalier"}) {
    const std::filesystem::path directory = (base / "models/espalier-nano").lexically_normal();
    if (std::filesystem::is_directory(directory, ignored)) return directory.string();
    looked += format("{}{}", looked.empty() ? "" : ", ", directory.string());
  }
  return make_error(ErrorCode::kNotFound, "no model was named, and the default one is not at {}", looked);
}

Result<Checkpoint> open_checkpoint(const std::string& directory) {
  ESPALIER_ASSIGN(Checkpoint checkpoint, Checkpoint::open(directory));
  for (const std::string& note : checkpoint.notes()) log_info("{}", note);
  return checkpoint;
}

Result<std::unique_ptr<Backend>> make_backend(const std::string& name, int threads) {
  if (name == "reference") return make_reference_backend();
  if (name == "cpu") return make_cpu_backend({.threads = threads, .isa = {}});
  return make_error(ErrorCode::kInvalidArgument, "backend '{}' is not one of cpu, reference", name);
}

}  // namespace espalier
