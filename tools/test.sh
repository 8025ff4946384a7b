#!/usr/bin/env bash
# What `make test` runs, in stages; each ends in one line, the last line of all is "N passed, N failed" over every ctest test.
#   tools     repository checks (layers, ops) and the tests of the tools
#   release   optimised build, every test
#   asan      AddressSanitizer and UndefinedBehaviorSanitizer, every test but the long laws, and each fuzz target for ten seconds
#   tsan      ThreadSanitizer over everything that shares state between threads
# ESPALIER_TEST_STAGES="tools tsan" chooses stages, ESPALIER_JOBS the parallelism.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${ESPALIER_JOBS:-$(nproc)}
stages=${ESPALIER_TEST_STAGES:-tools release asan tsan}
# Minutes each under a sanitizer, and no code that the batching law and the op tests do not reach: release only.
long_laws='^laws_(chunking|tree)_'
tsan_tests='^(base|engine|http)_test$|^laws_|^regressions_server_'
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}" CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR:-1}"  # a compilation is the same in every clone
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"

passed=0
failed=0

# run_ctest STAGE ARGS...: one ctest run in build/PRESET; adds its counts to the totals.
run_ctest() {
  local stage=$1 preset=$2 log summary stage_failed stage_total
  shift 2
  log=build/$preset/test_log.txt
  ctest --test-dir "build/$preset" -j "$jobs" --output-on-failure --no-tests=error "$@" 2>&1 | tee "$log" || true
  summary=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$log" | tail -n 1 || true)
  if [ -z "$summary" ]; then
    echo "stage $stage: ctest gave no result"
    failed=$((failed + 1))
    return
  fi
  stage_failed=$(sed -E 's/.*passed, ([0-9]+) tests? failed.*/\1/' <<<"$summary")
  stage_total=$(sed -E 's/.*out of ([0-9]+).*/\1/' <<<"$summary")
  passed=$((passed + stage_total - stage_failed))
  failed=$((failed + stage_failed))
  echo "stage $stage: $((stage_total - stage_failed)) passed, $stage_failed failed, $(skipped_cases "build/$preset") cases skipped, ${SECONDS} s since start"
}

# A case that skips leaves its program green: say how many did, so that nothing is missed silently. GoogleTest and unittest say it at their ends.
skipped_cases() {
  grep -hoE '^\[  SKIPPED \] [0-9]+ tests?|^OK \(skipped=[0-9]+\)' "$1/Testing/Temporary/LastTest.log" 2>/dev/null |
    grep -oE '[0-9]+' | awk '{sum += $1} END {print sum + 0}'
}

build() {
  local preset=$1
  shift
  cmake --preset "$preset" >/dev/null
  cmake --build "build/$preset" -j "$jobs" "$@"
}

fail_stage() {
  echo "stage $1: build failed"
  failed=$((failed + 1))
}

for stage in $stages; do
  echo "== $stage"
  case $stage in
    tools)
      cmake --preset release >/dev/null
      run_ctest tools release -L tools
      ;;
    release)
      if build release; then run_ctest release release -LE tools; else fail_stage release; fi
      ;;
    asan)
      if build asan; then run_ctest asan asan -LE tools -E "$long_laws"; else fail_stage asan; fi
      ;;
    tsan)
      cmake --preset tsan >/dev/null
      mapfile -t targets < <(ctest --test-dir build/tsan -N -R "$tsan_tests" -E "$long_laws" | sed -n 's/^ *Test *#[0-9]*: //p')
      if build tsan --target "${targets[@]}"; then run_ctest tsan tsan -R "$tsan_tests" -E "$long_laws"; else fail_stage tsan; fi
      ;;
    *)
      echo "unknown stage '$stage' (tools, release, asan, tsan)"
      exit 2
      ;;
  esac
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
