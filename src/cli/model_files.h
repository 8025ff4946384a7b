// What the commands open: a checkpoint directory, its tokenizer, a backend by name.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace espalier {

// Opens the checkpoint and logs its notes.
Result<Checkpoint> open_checkpoint(const std::string& directory);

// "cpu" (with that many threads, 0: physical cores) or "reference".
Result<std::unique_ptr<Backend>> make_backend(const std::string& name, int threads);

}  // namespace espalier
