// Ctrl-C as a flag that long work looks at.
#pragma once

#include <atomic>

namespace espalier {

// Installs the handler and returns the flag it sets. System calls that wait are interrupted, not restarted.
std::atomic<bool>& interrupt_flag();

}  // namespace espalier
