#include "model/layouts.h"

namespace espalier {

KvLayout kv_layout(const ModelConfig& config, DType kv_dtype, int32_t page_size) {
  return {.num_layers = config.num_full_layers(),
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim,
          .page_size = page_size,
          .dtype = kv_dtype};
}

StateLayout state_layout(const ModelConfig& config, DType activation_dtype) {
  return {.num_layers = config.num_linear_layers(),
          .num_value_heads = config.linear_num_value_heads,
          .key_head_dim = config.linear_key_head_dim,
          .value_head_dim = config.linear_value_head_dim,
          .conv_dim = config.conv_dim(),
          .conv_kernel = config.conv_kernel,
          .hidden_size = config.hidden_size,
          .activation_dtype = activation_dtype};
}

}  // namespace espalier
