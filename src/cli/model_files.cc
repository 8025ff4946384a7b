#include "cli/model_files.h"

#include <cstdlib>
#include <filesystem>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "base/format.h"
#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"

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

Result<SamplingDefaults> read_sampling_defaults(const std::string& directory) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored)) return make_error(ErrorCode::kNotFound, "{}: no such directory", directory);
  const std::string path = directory + "/generation_config.json";
  SamplingDefaults defaults;
  const Result<Json> config = load_json(path);
  if (!config.ok()) {
    if (config.error().code == ErrorCode::kNotFound) return defaults;
    return config.error();
  }
  if (!config->is_object()) return make_error(ErrorCode::kCorrupt, "{}: expected an object, found {}", path, config->type_name());
  const auto number = [&](const char* name, double low, double high, double otherwise) {
    const auto found = config->find(name);
    if (found == config->end() || found->is_null()) return otherwise;
    if (found->is_number() && found->get<double>() >= low && found->get<double>() <= high) return found->get<double>();
    log_warn("{}: {}: expected a number in [{}, {}], found {}; ignored", path, name, low, high, utf8_prefix(dump_json(*found), 60));
    return otherwise;
  };
  defaults.temperature = number("temperature", 0.0, 100.0, defaults.temperature);
  defaults.top_k = static_cast<int32_t>(number("top_k", 0.0, 1 << 30, defaults.top_k));
  defaults.top_p = number("top_p", 0.0, 1.0, defaults.top_p);
  defaults.min_p = number("min_p", 0.0, 1.0, defaults.min_p);
  defaults.repetition_penalty = number("repetition_penalty", 0.01, 100.0, defaults.repetition_penalty);
  if (const auto sample = config->find("do_sample"); sample != config->end() && *sample == false) defaults.temperature = 0.0;
  return defaults;
}

Result<std::unique_ptr<Backend>> make_backend(const std::string& name, int threads) {
  if (name == "reference") return make_reference_backend();
  if (name == "cpu") return make_cpu_backend({.threads = threads, .isa = {}});
  return make_error(ErrorCode::kInvalidArgument, "backend '{}' is not one of cpu, reference", name);
}

}  // namespace espalier
