#!/usr/bin/env bash
# What `make acceptance` runs: the long checks that `make test` has no time for. Each stage ends in one line.
#   aarch64    base, tensor, ops and backend for 64-bit Arm, their tests under qemu
#   fuzz       every fuzz target with libFuzzer under AddressSanitizer
#   workload   the whole agent workload on the default model, twice, with identical replies
# ESPALIER_ACCEPTANCE_STAGES chooses stages, ESPALIER_FUZZ_SECONDS the time of each target, ESPALIER_WORKLOAD the data file.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${ESPALIER_JOBS:-$(nproc)}
stages=${ESPALIER_ACCEPTANCE_STAGES:-aarch64 fuzz workload}
fuzz_seconds=${ESPALIER_FUZZ_SECONDS:-300}
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
  local run
  cmake --preset release >/dev/null
  cmake --build build/release -j "$jobs" --target espalier_cli
  for run in 1 2; do
    build/release/espalier replay --data "$workload" --model models/espalier-nano --replies "$out/replies_$run.jsonl" --json >"$out/workload_$run.json"
    cat "$out/workload_$run.json"
  done
  cmp "$out/replies_1.jsonl" "$out/replies_2.jsonl"
  python3 -c '
import json, sys
result = json.load(open(sys.argv[1]))
turns = sum(json.loads(line)["role"] == "assistant" for line in open(sys.argv[2]))
print(result["turns_ok"], "of", turns, "turns,", result["turns_failed"], "failed")
sys.exit(result["turns_ok"] != turns or result["turns_failed"] != 0)' "$out/workload_1.json" "$workload"
}

for stage in $stages; do
  case $stage in
    aarch64 | fuzz | workload) ;;
    *) echo "unknown stage '$stage' (aarch64, fuzz, workload)" >&2; exit 2 ;;
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
