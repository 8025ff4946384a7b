// The main program of a fuzz target without libFuzzer: runs the seeds, then mutations of them for a time or a number of runs.
//
//   fuzz_x [--seconds N] [--runs N] [--seed S] [--timeout N] [--crash-file FILE] FILE_OR_FOLDER...
//
// Exit status: 0 nothing found, 2 wrong use, else that of the crash (or of the signal). The input that crashed, or that ran longer
// than --timeout seconds, is left in the crash file; giving that file instead of a folder runs it alone. Fuzzing is blind: no coverage guides it.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "fuzz/mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Present in sanitized programs only: called after the report, before the process ends.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());
// UndefinedBehaviorSanitizer has a run-time library of its own, which does not know that callback: let it abort, which we catch.
extern "C" __attribute__((visibility("default"))) const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

namespace espalier::fuzz {
namespace {

constexpr size_t kMaxBytes = 64 * 1024;

// What the crash handlers can reach: plain memory, no allocation.
char current_input[kMaxBytes];
size_t current_size = 0;
char crash_file[4096] = "fuzz-crash";

void say(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void save_input() {
  const int file = ::open(crash_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || ::write(file, current_input, current_size) < 0) {
    say("fuzz: could not save the input\n");
    return;
  }
  ::close(file);
  say("fuzz: the input is in ");
  say(crash_file);
  say("\n");
}

void on_signal(int number) {
  if (number == SIGALRM) say("fuzz: the input ran into the time limit\n");
  save_input();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void catch_crashes() {
  std::vector<int> signals = {SIGABRT, SIGALRM};
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(save_input);  // the sanitizer has handlers of its own for the other signals
  } else {
    signals.insert(signals.end(), {SIGSEGV, SIGBUS, SIGFPE, SIGILL});
  }
  // A stack of its own: endless recursion leaves none.
  static char stack[64 * 1024];
  const stack_t alternative = {.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  if (__sanitizer_set_death_callback == nullptr) ::sigaltstack(&alternative, nullptr);
  for (const int number : signals) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_ONSTACK | SA_NODEFER);
    ::sigaction(number, &action, nullptr);
  }
}

struct Options {
  std::optional<double> seconds;
  std::optional<uint64_t> runs;
  uint64_t seed = std::random_device()();
  unsigned timeout_seconds = 20;
  std::vector<std::string> paths;
};

[[noreturn]] void wrong_use(const std::string& message) {
  std::fprintf(stderr, "fuzz: %s\nusage: [--seconds N] [--runs N] [--seed S] [--timeout N] [--crash-file FILE] FILE_OR_FOLDER...\n", message.c_str());
  std::exit(2);
}

template <typename T>
T number(std::string_view flag, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) wrong_use(std::string(flag) + " needs a number, not '" + std::string(text) + "'");
  return value;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (!flag.starts_with("--")) {
      options.paths.push_back(flag);
      continue;
    }
    if (i + 1 == argc) wrong_use(flag + " needs a value");
    const std::string_view value = argv[++i];
    if (flag == "--seconds") {
      options.seconds = number<double>(flag, value);
    } else if (flag == "--runs") {
      options.runs = number<uint64_t>(flag, value);
    } else if (flag == "--seed") {
      options.seed = number<uint64_t>(flag, value);
    } else if (flag == "--timeout") {
      options.timeout_seconds = number<unsigned>(flag, value);
    } else if (flag == "--crash-file") {
      if (value.size() >= sizeof crash_file) wrong_use("--crash-file is too long");
      std::memcpy(crash_file, value.data(), value.size());
      crash_file[value.size()] = '\0';
    } else {
      wrong_use("unknown option " + flag);
    }
  }
  if (options.paths.empty()) wrong_use("no seeds given");
  return options;
}

std::vector<std::string> load_seeds(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());  // a seed number means the same mutations on every file system
  std::vector<std::string> seeds;
  for (const std::string& file : files) {
    Result<std::string> bytes = read_file(file, kMaxBytes);
    if (!bytes.ok()) wrong_use(bytes.error().message);
    seeds.push_back(std::move(bytes).value());
  }
  if (seeds.empty()) wrong_use("no seed files in " + paths.front());
  return seeds;
}

void run_one(std::string_view input, unsigned timeout_seconds) {
  current_size = input.size();
  std::memcpy(current_input, input.data(), input.size());
  ::alarm(timeout_seconds);
  // An exact copy on the heap, so that reading one byte too far is seen by AddressSanitizer.
  const std::vector<uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  ::alarm(0);
}

int run(const Options& options) {
  const std::vector<std::string> seeds = load_seeds(options.paths);
  catch_crashes();
  std::printf("fuzz: %zu seeds, --seed %llu\n", seeds.size(), static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  for (const std::string& seed : seeds) run_one(seed, options.timeout_seconds);
  uint64_t runs = seeds.size();
  Mutator mutator(options.seed, kMaxBytes);
  const bool mutates = options.seconds.has_value() || options.runs.has_value();
  while (mutates && (!options.seconds || elapsed() < *options.seconds) && (!options.runs || runs < *options.runs)) {
    run_one(mutator.mutate(seeds[mutator.below(seeds.size())], seeds), options.timeout_seconds);
    ++runs;
  }
  std::printf("fuzz: %llu runs, %.0f a second, nothing found\n", static_cast<unsigned long long>(runs), static_cast<double>(runs) / std::max(elapsed(), 1e-9));
  return 0;
}

}  // namespace
}  // namespace espalier::fuzz

int main(int argc, char** argv) { return espalier::fuzz::run(espalier::fuzz::parse_options(argc, argv)); }
