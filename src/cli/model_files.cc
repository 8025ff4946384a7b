#include "cli/model_files.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "base/format.h"
#include "base/log.h"

namespace espalier {

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
