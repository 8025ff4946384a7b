// Packs the accepted path of a tree: its keys and values move to the slots that sequential decoding would have used.
#pragma once

#include <cstdint>

#include "ops/kv_layout.h"

namespace espalier {

// For i ascending: slot to[i] of the sequence takes K and V of slot from[i], in every layer; from[i] >= to[i], both strictly ascending.
// Slots on page_table[slot / page_size]. The bytes are moved, not converted.
struct KvCompactArgs {
  KvView kv;
  const int32_t* page_table;  // of one sequence
  const int32_t* from;        // [count]
  const int32_t* to;          // [count]
  int32_t count;
};

}  // namespace espalier
