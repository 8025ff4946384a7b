#include "cli/engine_flags.h"

#include <unistd.h>

#include <cstdio>

#include "cli/model_files.h"

namespace espalier {
namespace {

class LoadingLine {
 public:
  ~LoadingLine() { erase(); }

  void show(double fraction) {
    if (!terminal_) return;
    const int percent = static_cast<int>(fraction * 100.0);
    if (percent == shown_percent_) return;
    shown_percent_ = percent;
    std::fprintf(stderr, "\r\x1b[Kloading the model: %d %%", percent);
    if (fraction == 1.0) erase();  // before anybody logs
  }

 private:
  void erase() {
    if (shown_percent_ < 0) return;
    std::fputs("\r\x1b[K", stderr);
    shown_percent_ = -1;
  }

  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  int shown_percent_ = -1;
};

}  // namespace

std::string refuse_negative(std::string& text) { return text.starts_with('-') ? "a size cannot be negative: " + text : std::string(); }

void EngineFlags::add_to(CLI::App& app) {
  app.add_option("--context", engine.context_length, "Tokens of prompt and reply together; 0: the model's own")->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  app.add_option("--cache-bytes", engine.cache_bytes, "Hard limit of keys, values and states, in bytes (64M, 8G, ...); 0: from free memory")
      ->transform(CLI::Validator(refuse_negative, "SIZE"))
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--max-sequences", engine.max_sequences, "Sequences decoded in one batch")->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--backend", backend, "cpu or reference")->capture_default_str();
  app.add_option("--threads", threads, "Threads; 0: physical cores")->check(CLI::Range(0, 1024));
}

Result<OpenModel> open_model(const EngineFlags& flags) {
  OpenModel model;
  ESPALIER_ASSIGN(const std::string directory, find_model(flags.model));
  ESPALIER_ASSIGN(const Checkpoint checkpoint, open_checkpoint(directory));
  ESPALIER_ASSIGN(model.tokenizer, Tokenizer::load(directory));
  ESPALIER_ASSIGN(model.chat_template, ChatTemplate::load(directory));
  ESPALIER_ASSIGN(std::unique_ptr<Backend> backend, make_backend(flags.backend, flags.threads));
  LoadingLine line;
  EngineOptions options = flags.engine;
  options.on_progress = [&](double fraction) {
    line.show(fraction);
    return !flags.engine.on_progress || flags.engine.on_progress(fraction);
  };
  ESPALIER_ASSIGN(model.engine, Engine::open(checkpoint, model.tokenizer, std::move(backend), options));
  return model;
}

}  // namespace espalier
