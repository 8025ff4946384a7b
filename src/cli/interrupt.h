// Ctrl-C and SIGTERM as flags that long work looks at.
#pragma once

#include <atomic>

namespace espalier {

// Installs the handler and returns the flag it sets. System calls that wait are interrupted, not restarted.
std::atomic<bool>& interrupt_flag();

// The same for what runs until it is told to stop: Ctrl-C and SIGTERM set it once, a second one ends the process.
std::atomic<bool>& termination_flag();

}  // namespace espalier
