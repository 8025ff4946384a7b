#include "cli/interrupt.h"

#include <csignal>

namespace espalier {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void on_interrupt(int) { interrupted.store(true); }

}  // namespace

std::atomic<bool>& interrupt_flag() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;
  ::sigaction(SIGINT, &action, nullptr);
  return interrupted;
}

}  // namespace espalier
