#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_set>

#include "base/format.h"
#include "base/json.h"
#include "base/utf8.h"
#include "checkpoint/shard_index.h"

namespace espalier {
namespace {

constexpr JsonLimits kConfigLimits{.max_bytes = size_t{16} << 20, .max_depth = 32};
constexpr std::array<std::string_view, 6> kQuantisationSuffixes = {".weight_packed",    ".weight_scale",        ".weight_scale_2",
                                                                   ".weight_scale_inv", ".weight_global_scale", ".input_global_scale"};

bool is_float(DType dtype) { return dtype == DType::kBf16 || dtype == DType::kF16 || dtype == DType::kF32; }

// Null where the directory has no such file.
Result<std::unique_ptr<Json>> load_optional_json(const std::string& path) {
  Result<Json> loaded = load_json(path, kConfigLimits);
  if (loaded.ok()) return std::make_unique<Json>(std::move(loaded).value());
  if (loaded.error().code == ErrorCode::kNotFound) return std::unique_ptr<Json>();
  return std::move(loaded).error();
}

// ModelOpt may state the quantisation beside config.json only.
Status refuse_hf_quant_config(const std::string& directory) {
  const std::string path = directory + "/hf_quant_config.json";
  ESPALIER_ASSIGN(const std::unique_ptr<Json> document, load_optional_json(path));
  if (document == nullptr || !document->is_object()) return Ok{};
  const auto quantization = document->find("quantization");
  if (quantization == document->end() || !quantization->is_object()) return Ok{};
  const auto algorithm = quantization->find("quant_algo");
  if (algorithm == quantization->end() || algorithm->is_null()) return Ok{};
  return make_error(ErrorCode::kUnsupported, "{}: quantised checkpoints are not supported yet: quant_algo {}", path,
                    utf8_prefix(dump_json(*algorithm), 80));
}

bool same_content(const ConstTensorView& a, const ConstTensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape && (a.size_bytes() == 0 || std::memcmp(a.data, b.data, a.size_bytes()) == 0);
}

}  // namespace

// Opens a directory step by step; each step may rely on the ones before it.
class CheckpointReader {
 public:
  explicit CheckpointReader(const std::string& directory) { out_.directory_ = directory; }

  Result<Checkpoint> read() {
    std::error_code ignored;
    if (!std::filesystem::is_directory(directory(), ignored)) {
      return make_error(ErrorCode::kNotFound, "{}: expected a model directory, found {}", directory(),
                        std::filesystem::exists(directory(), ignored) ? "a file" : "nothing");
    }
    ESPALIER_TRY(read_config());
    ESPALIER_TRY(refuse_hf_quant_config(directory()));
    ESPALIER_ASSIGN(index_, read_shard_index(directory()));
    out_.notes_ = index_.notes;
    ESPALIER_TRY(open_shards());
    ESPALIER_TRY(hold_against_index());
    ESPALIER_TRY(sort_tensors());
    decide_head_and_mtp();
    ESPALIER_TRY(check_tensors());
    ESPALIER_TRY(refuse_unknown());
    for (const auto& [kind, entry] : counted_) out_.inventory_.push_back({kind, entry.num_tensors, entry.size_bytes});
    return std::move(out_);
  }

 private:
  using Location = Checkpoint::Location;

  const std::string& directory() const { return out_.directory_; }
  const SafetensorsFile& shard(const Location& at) const { return out_.shards_[at.shard]; }

  Status read_config() {
    const std::string path = directory() + "/config.json";
    ESPALIER_ASSIGN(const Json config, load_json(path, kConfigLimits));
    ESPALIER_ASSIGN(const std::unique_ptr<Json> generation, load_optional_json(directory() + "/generation_config.json"));
    ESPALIER_ASSIGN(out_.config_, parse_model_config(config, generation.get(), path));
    return Ok{};
  }

  Status open_shards() {
    for (size_t i = 0; i < index_.files.size(); ++i) {
      Result<SafetensorsFile> file = SafetensorsFile::open(directory() + "/" + index_.files[i]);
      if (!file.ok() && file.error().code == ErrorCode::kNotFound && index_.is_index) return absent_shard(i);
      if (!file.ok()) return std::move(file).error();
      out_.shards_.push_back(std::move(file).value());
    }
    for (size_t i = 0; i < out_.shards_.size(); ++i) {
      for (const TensorInfo& info : out_.shards_[i].tensors()) {
        const auto [at, inserted] = held_.emplace(info.name, Location{i, &info});
        if (inserted) continue;
        return make_error(ErrorCode::kCorrupt, "{}: tensor '{}' is duplicated: expected once, found in {} too", out_.shards_[i].path(),
                          info.name, shard(at->second).path());
      }
    }
    return Ok{};
  }

  Error absent_shard(size_t file) const {
    std::string first;
    size_t count = 0;
    for (const auto& [tensor, of] : index_.file_of_tensor) {
      if (of != file) continue;
      if (++count == 1 || tensor < first) first = tensor;
    }
    return make_error(ErrorCode::kNotFound, "{}/{}: the file is absent, expected by the index for {} tensors, the first '{}'", directory(),
                      index_.files[file], count, first);
  }

  // Every tensor of the index lies in the file it names; tensors that it does not list are set aside.
  Status hold_against_index() {
    if (!index_.is_index) return Ok{};
    for (const auto& [tensor, file] : std::map<std::string_view, size_t>(index_.file_of_tensor.begin(), index_.file_of_tensor.end())) {
      const auto found = held_.find(tensor);
      if (found != held_.end() && found->second.shard == file) continue;
      return make_error(ErrorCode::kCorrupt, "{}: the file lacks tensor '{}', expected here by the index, found {}",
                        out_.shards_[file].path(), tensor, found == held_.end() ? "in no file" : "in " + shard(found->second).path());
    }
    for (auto at = held_.begin(); at != held_.end();) {
      if (index_.file_of_tensor.contains(std::string(at->first))) {
        ++at;
        continue;
      }
      unlisted_.insert(*at);
      count(TensorKind::kIgnored, *at->second.info);
      at = held_.erase(at);
    }
    if (!unlisted_.empty()) {
      out_.notes_.push_back(format("{}: {} tensors of the files are not in the index and are ignored, the first '{}'", index_.path,
                                   unlisted_.size(), unlisted_.begin()->first));
    }
    return Ok{};
  }

  // Gives each tensor its canonical name, or a reason to have none.
  Status sort_tensors() {
    for (const auto& [raw_name, at] : held_) {
      for (const std::string_view suffix : kQuantisationSuffixes) {
        if (!raw_name.ends_with(suffix)) continue;
        return make_error(ErrorCode::kUnsupported,
                          "{}: tensor '{}': quantised checkpoints are not supported yet: found a quantisation scale or code",
                          shard(at).path(), raw_name);
      }
      if (is_vision_tensor(raw_name)) {
        count(TensorKind::kVisionSkipped, *at.info);
        continue;
      }
      if (is_ignorable_tensor(raw_name)) {
        count(TensorKind::kIgnored, *at.info);
        continue;
      }
      const std::optional<std::string> name = canonical_tensor_name(raw_name);
      if (!name) {
        unknown_.insert(raw_name);
        continue;
      }
      if (name->find(".in_proj_qkvz.") != std::string::npos || name->find(".in_proj_ba.") != std::string::npos) {
        return make_error(
            ErrorCode::kUnsupported,
            "{}: tensor '{}': the fused packing of Qwen3-Next is not supported, expected in_proj_qkv, in_proj_z, in_proj_b and in_proj_a",
            shard(at).path(), raw_name);
      }
      const auto [other, inserted] = out_.tensors_.emplace(*name, at);
      if (inserted) continue;
      if (!same_content(shard(at).view(*at.info), shard(other->second).view(*other->second.info))) {
        return make_error(ErrorCode::kCorrupt, "{}: tensors '{}' and '{}' both mean {}, expected equal data, found different", shard(at).path(),
                          other->second.info->name, raw_name, *name);
      }
      count(TensorKind::kIgnored, *at.info);
    }
    return Ok{};
  }

  void decide_head_and_mtp() {
    ModelConfig& config = out_.config_;
    if (out_.tensors_.contains("lm_head.weight")) config.tie_word_embeddings = false;
    const auto is_mtp = [](const auto& entry) { return entry.first.starts_with("mtp."); };
    const bool any_mtp = std::any_of(out_.tensors_.begin(), out_.tensors_.end(), is_mtp);
    if (config.num_mtp_layers > 0) {
      config.has_mtp = any_mtp;
      if (!any_mtp)
        out_.notes_.push_back(
            format("{}: no mtp.* tensors although the model type has an MTP layer: drafting with it is off", directory()));
    } else if (any_mtp) {
      out_.notes_.push_back(format("{}: mtp.* tensors are ignored: mtp_num_hidden_layers is 0", directory()));
      for (const auto& entry : out_.tensors_) {
        if (is_mtp(entry)) count(TensorKind::kIgnored, *entry.second.info);
      }
      std::erase_if(out_.tensors_, is_mtp);
    }
  }

  Status check_tensors() {
    std::vector<TensorSpec> specs = trunk_tensors(out_.config_);
    if (out_.config_.has_mtp) {
      for (TensorSpec& spec : mtp_tensors(out_.config_)) specs.push_back(std::move(spec));
    }
    for (const TensorSpec& spec : specs) {
      const auto found = out_.tensors_.find(spec.name);
      if (found == out_.tensors_.end()) return missing(spec);
      const TensorInfo& info = *found->second.info;
      if (!is_float(info.dtype)) {
        return make_error(ErrorCode::kUnsupported,
                          "{}: tensor '{}': expected BF16, F16 or F32 {}, found {} {}: quantised checkpoints are not supported yet",
                          shard(found->second).path(), info.name, spec.shape.to_string(), dtype_name(info.dtype), info.shape.to_string());
      }
      if (info.shape != spec.shape) {
        return make_error(ErrorCode::kCorrupt, "{}: tensor '{}': expected shape {} (by config.json), found {}", shard(found->second).path(),
                          info.name, spec.shape.to_string(), info.shape.to_string());
      }
      count(spec.kind, info);
      expected_.insert(spec.name);
    }
    return Ok{};
  }

  Error missing(const TensorSpec& spec) const {
    for (const auto& [raw_name, at] : unlisted_) {
      if (canonical_tensor_name(raw_name) != spec.name) continue;
      return make_error(ErrorCode::kCorrupt,
                        "{}: tensor '{}' is missing: expected in the index, found only in {}, which the index does not say", index_.path,
                        raw_name, shard(at).path());
    }
    return make_error(ErrorCode::kCorrupt, "{}: tensor {} is missing: expected {}, found in no file of the model", index_.path, spec.name,
                      spec.shape.to_string());
  }

  Status refuse_unknown() {
    for (const auto& [name, at] : out_.tensors_) {
      if (!expected_.contains(name)) unknown_.insert(at.info->name);
    }
    if (unknown_.empty()) return Ok{};
    std::string names;
    size_t listed = 0;
    for (const std::string_view name : unknown_) {
      if (listed == 3) break;
      names += format("{}'{}'", listed++ == 0 ? "" : ", ", name);
    }
    if (unknown_.size() > listed) names += format(" and {} more", unknown_.size() - listed);
    return make_error(ErrorCode::kUnsupported, "{}: unknown tensors, expected only those of the model that config.json describes, found {}",
                      index_.path, names);
  }

  void count(TensorKind kind, const TensorInfo& info) {
    InventoryEntry& entry = counted_[kind];
    entry.num_tensors += 1;
    entry.size_bytes += info.size_bytes;
  }

  Checkpoint out_;
  ShardIndex index_;
  std::map<std::string_view, Location> held_;      // by the name in the file; ordered, so that the first fault is always the same
  std::map<std::string_view, Location> unlisted_;  // held by a shard, but not in the index
  std::set<std::string_view> unknown_;             // names in the file
  std::unordered_set<std::string> expected_;       // canonical names
  std::map<TensorKind, InventoryEntry> counted_;
};

Result<Checkpoint> Checkpoint::open(const std::string& directory) { return CheckpointReader(directory).read(); }

Result<ConstTensorView> Checkpoint::tensor(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  if (found == tensors_.end()) return make_error(ErrorCode::kNotFound, "{}: no tensor {}", directory_, name);
  return shards_[found->second.shard].view(*found->second.info);
}

void Checkpoint::drop(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  if (found != tensors_.end()) shards_[found->second.shard].drop(*found->second.info);
}

}  // namespace espalier
