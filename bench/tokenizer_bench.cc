// Speed of the tokenizer on source code (this project's own), with the default model's tokenizer and, where ../shared lies beside the
// checkout, with Qwen3.6's. bytes_per_second counts bytes of text, one core; at least 5 MB/s is promised.
//   build/release/tokenizer_bench
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/tokenizer.h"

#ifdef ESPALIER_BENCH_SHARED
#include "tests/support/oracle.h"
#endif

namespace espalier {
namespace {

const std::string kNanoModel = ESPALIER_SOURCE_DIR "/models/espalier-nano";

const std::string& source_code() {
  static const std::string text = [] {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(ESPALIER_SOURCE_DIR "/src")) {
      const std::string extension = entry.path().extension();
      if (extension == ".cc" || extension == ".h") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::string joined;
    for (const std::string& path : paths) joined += read_file(path, size_t{16} << 20).value();
    return joined;
  }();
  return text;
}

void encode(benchmark::State& state, const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& text) {
  size_t num_tokens = 0;
  for (auto _ : state) {
    const std::vector<TokenId> ids = tokenizer->encode(text);
    num_tokens = ids.size();
    benchmark::DoNotOptimize(ids.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.counters["bytes_per_token"] = static_cast<double>(text.size()) / static_cast<double>(num_tokens);
}

// One token at a time, as replies stream.
void detokenize(benchmark::State& state, const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& text) {
  const std::vector<TokenId> ids = tokenizer->encode(text);
  for (auto _ : state) {
    StreamingDetokenizer detokenizer(tokenizer);
    for (const TokenId id : ids) benchmark::DoNotOptimize(detokenizer.push(id));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}

// Texts that a careless tokenizer takes quadratic time for: one piece, one run, one pile of marks.
std::string repeated(const std::string& unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

void register_benches(const std::string& name, const std::shared_ptr<const Tokenizer>& tokenizer) {
  const auto add = [&](const std::string& what, auto* bench, const std::string& text) {
    benchmark::RegisterBenchmark((name + "/" + what).c_str(), [=](benchmark::State& state) { bench(state, tokenizer, text); })
        ->Unit(benchmark::kMillisecond);
  };
  constexpr size_t kLong = size_t{1} << 20;
  add("encode_source", encode, source_code());
  add("detokenize_source", detokenize, source_code());
  add("encode_one_word_1MiB", encode, repeated("abcdefghij", kLong));
  add("encode_spaces_1MiB", encode, std::string(kLong, ' '));
  add("encode_marks_1MiB", encode, repeated("\u0301\u0316", kLong));
}

bool register_all() {
  benchmark::RegisterBenchmark("nano/load", [](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::load(kNanoModel).value());
  })->Unit(benchmark::kMillisecond);
  register_benches("nano", Tokenizer::load(kNanoModel).value());
#ifdef ESPALIER_BENCH_SHARED
  if (testing::shared_available()) {
    const std::string text = testing::read_gzip(testing::shared_path("oracle/tokenizer/tokenizer.json.gz"));
    const auto load = [text] { return Tokenizer::from_json(parse_json(text, "tokenizer.json").value(), nullptr, "tokenizer.json").value(); };
    benchmark::RegisterBenchmark("qwen3.6/parse_json", [text](benchmark::State& state) {
      for (auto _ : state) benchmark::DoNotOptimize(parse_json(text, "tokenizer.json").value());
    })->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark("qwen3.6/load", [load](benchmark::State& state) {
      for (auto _ : state) benchmark::DoNotOptimize(load());
    })->Unit(benchmark::kMillisecond);
    register_benches("qwen3.6", load());
  }
#endif
  return true;
}

const bool registered = register_all();

}  // namespace
}  // namespace espalier
