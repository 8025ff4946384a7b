// What the commands open: a checkpoint directory, its tokenizer, a backend by name.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "server/request_limits.h"
#include "tokenizer/tokenizer.h"

namespace espalier {

// The directory asked for; without one, ESPALIER_MODEL or the default model: models/espalier-nano below the current folder, beside the
// program's build folder, or where it was installed. kNotFound lists where it looked.
Result<std::string> find_model(const std::string& asked_for);

// Opens the checkpoint and logs its notes.
Result<Checkpoint> open_checkpoint(const std::string& directory);

// What generation_config.json recommends; the API's defaults where it says nothing, greedy where it turns sampling off. A value out of its
// range is ignored with a warning.
Result<SamplingDefaults> read_sampling_defaults(const std::string& directory);

// "cpu" (with that many threads, 0: physical cores) or "reference".
Result<std::unique_ptr<Backend>> make_backend(const std::string& name, int threads);

}  // namespace espalier
