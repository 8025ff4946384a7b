#!/usr/bin/env bash
# Runs every benchmark program of the release build. Arguments go to each of them, e.g. --benchmark_filter=BM_Linear.
set -euo pipefail
cd "$(dirname "$0")/.."
sed -n 's/^model name[^:]*: /processor: /p' /proc/cpuinfo | head -n 1
for program in build/release/*_bench; do
  [ -x "$program" ] || { echo "no benchmarks in build/release: run make first" >&2; exit 1; }
  echo "== ${program##*/}"
  "$program" "$@"
done
