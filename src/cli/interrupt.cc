#include "cli/interrupt.h"

#include <csignal>

namespace espalier {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void on_interrupt(int) { interrupted.store(true); }

void install(int signal, unsigned flags) {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(flags);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

std::atomic<bool>& interrupt_flag() {
  install(SIGINT, 0);
  return interrupted;
}

std::atomic<bool>& termination_flag() {
  install(SIGINT, SA_RESETHAND);
  install(SIGTERM, SA_RESETHAND);
  return interrupted;
}

}  // namespace espalier
