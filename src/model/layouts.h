// The sizes of what a sequence of a model keeps, from its configuration alone: for the model itself and for plans made before loading.
#pragma once

#include <cstdint>

#include "checkpoint/model_config.h"
#include "ops/kv_layout.h"
#include "ops/state_layout.h"

namespace espalier {

KvLayout kv_layout(const ModelConfig& config, DType kv_dtype, int32_t page_size);
StateLayout state_layout(const ModelConfig& config, DType activation_dtype);

}  // namespace espalier
