#!/usr/bin/env bash
# What `make acceptance` runs: the long checks that `make test` has no time for. Each stage ends in one line.
#   aarch64    base, tensor, ops and backend for 64-bit Arm, their tests under qemu
#   fuzz       every fuzz target with libFuzzer under AddressSanitizer
#   workload   the whole agent workload on the default model, in process and over HTTP, with identical replies
#   prompts    the same prompts with the Qwen3.6 tokenizer and template: how many tokens they are and how many of them are hot
#   clients    the server with clients from PyPI, which it installs
#   schema     the server with requests made from docs/openapi.yaml: no 5xx in ESPALIER_SCHEMA_MINUTES
#   load       the server under AddressSanitizer with 32 clients and 2,000 requests, most of them unkind
#   memory     the first conversation on a checkpoint of the 0.8B shape: memory as `espalier inspect` planned it
# ESPALIER_ACCEPTANCE_STAGES chooses stages, ESPALIER_FUZZ_SECONDS the time of each target, ESPALIER_WORKLOAD the data file.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${ESPALIER_JOBS:-$(nproc)}
stages=${ESPALIER_ACCEPTANCE_STAGES:-aarch64 fuzz workload prompts clients schema load memory}
fuzz_seconds=${ESPALIER_FUZZ_SECONDS:-600}
workload=${ESPALIER_WORKLOAD:-../shared/data/mlperf/agentic_coding_2.5h.jsonl}
out=build/acceptance
mkdir -p "$out"
failures=0

aarch64() {
  cmake --preset aarch64 >/dev/null
  cmake --build build/aarch64 -j "$jobs"
  ctest --test-dir build/aarch64 -j "$jobs" --output-on-failure --no-tests=error --timeout 1800
}

fuzz() {
  local source name corpus
  cmake --preset fuzz >/dev/null
  for source in fuzz/fuzz_*.cc; do
    name=$(basename "$source" .cc)
    cmake --build build/fuzz -j "$jobs" --target "$name"
    corpus=$out/corpus_$name  # what the run discovers stays out of the repository
    mkdir -p "$corpus"
    build/fuzz/"$name" -max_total_time="$fuzz_seconds" -timeout=20 -max_len=65536 -print_final_stats=1 \
      -artifact_prefix="$out/$name-" "$corpus" "fuzz/corpus/$name" 2>&1 | tail -n 12
  done
}

workload() {
  local way
  cmake --preset release >/dev/null
  cmake --build build/release -j "$jobs" --target espalier_cli
  build/release/espalier replay --data "$workload" --model models/espalier-nano --replies "$out/replies_process.jsonl" --json >"$out/workload_process.json"
  tools/with_server.sh models/espalier-nano build/release/espalier replay --data "$workload" --url '{url}' --replies "$out/replies_http.jsonl" --json \
    >"$out/workload_http.json"
  cmp "$out/replies_process.jsonl" "$out/replies_http.jsonl"
  for way in process http; do
    cat "$out/workload_$way.json"
    python3 -c '
import json, sys
result = json.load(open(sys.argv[1]))
turns = sum(json.loads(line)["role"] == "assistant" for line in open(sys.argv[2]))
print(sys.argv[3] + ":", result["turns_ok"], "of", turns, "turns,", result["turns_failed"], "failed")
sys.exit(result["turns_ok"] != turns or result["turns_failed"] != 0)' "$out/workload_$way.json" "$workload" "$way"
  done
}

prompts() {
  local oracle=../shared/oracle
  cmake --preset release >/dev/null
  cmake --build build/release -j "$jobs" --target espalier_cli
  rm -rf "$out/qwen" "$out/qwen-tiny"
  mkdir -p "$out/qwen"
  cp "$oracle"/tokenizer/tokenizer.json.gz "$oracle"/tokenizer/added_tokens.json "$oracle"/chat/chat_template.jinja "$out/qwen"
  python3 tools/make_random_checkpoint.py "$out/qwen-tiny" --preset tiny --vocab 248320 --tokenizer "$out/qwen"
  build/release/espalier replay --data "$workload" --model "$out/qwen-tiny" --max-tokens 1 --json >"$out/prompts.json"
  # Figures of an independent program: another sum is a fault of template or tokenizer, fewer hot tokens one of the cache.
  python3 -c '
import json, sys
result = json.load(open(sys.argv[1]))
print("turns ok", result["turns_ok"], "prompt tokens", result["prompt_tokens"], "hot", result["hot_tokens"])
sys.exit(result["turns_ok"] != 1007 or result["prompt_tokens"] != 13560633 or result["hot_tokens"] < 13094820)' "$out/prompts.json"
}

clients() {
  cmake --preset release >/dev/null
  cmake --build build/release -j "$jobs" --target espalier_cli
  ESPALIER_INSTALL_CLIENTS=1 python3 -B tests/server/test_clients.py build/release/espalier .
}

schema() {
  cmake --preset release >/dev/null
  cmake --build build/release -j "$jobs" --target espalier_cli
  python3 -B tools/schema_test.py build/release/espalier "${ESPALIER_SCHEMA_MINUTES:-10}" || [ $? -eq 77 ]  # 77: skipped, it says why
}

load() {
  cmake --preset asan >/dev/null
  cmake --build build/asan -j "$jobs" --target espalier_cli
  ESPALIER_LOAD_REQUESTS=2000 python3 -B tests/server/test_load.py build/asan/espalier . sanitized
}

memory() {
  cmake --preset release >/dev/null
  cmake --build build/release -j "$jobs" --target espalier_cli
  rm -rf "$out/m08"
  python3 tools/make_random_checkpoint.py "$out/m08" --preset 0.8b --tokenizer models/espalier-nano
  python3 - "$workload" "$out/m08" <<'PYTHON'
import json, resource, subprocess, sys

workload, model = sys.argv[1:]
limit = "1G"
plan = json.loads(subprocess.check_output(["build/release/espalier", "inspect", model, "--cache-bytes", limit, "--json"]))["memory"]
report = json.loads(subprocess.check_output(["build/release/espalier", "replay", "--data", workload, "--model", model, "--conversations", "1",
                                             "--max-tokens", "1", "--cache-bytes", limit, "--json"]))
resident = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(f"turns ok {report['turns_ok']}, failed {report['turns_failed']}; planned {plan['total'] / 1e6:.0f} MB, resident {resident / 1e6:.0f} MB")
sys.exit(report["turns_failed"] != 0 or abs(resident - plan["total"]) > 0.1 * plan["total"])
PYTHON
}

for stage in $stages; do
  case $stage in
    aarch64 | fuzz | workload | prompts | clients | schema | load | memory) ;;
    *) echo "unknown stage '$stage' (aarch64, fuzz, workload, prompts, clients, schema, load, memory)" >&2; exit 2 ;;
  esac
  echo "== $stage"
  # A subshell of its own with errexit: inside `if` bash would go on after a failed command.
  set +e
  (set -e; "$stage")
  status=$?
  set -e
  if [ "$status" -eq 0 ]; then
    echo "stage $stage: passed, ${SECONDS} s since start"
  else
    echo "stage $stage: FAILED"
    failures=$((failures + 1))
  fi
done
echo "$failures acceptance stages failed"
[ "$failures" -eq 0 ]
