#!/usr/bin/env bash
# Installs what Espalier needs to build and test, as Debian packages. Idempotent; does nothing and asks for nothing when all are there.
#   tools/setup.sh                 build and `make test`
#   tools/setup.sh --acceptance    also `make acceptance`: Arm cross build under qemu, libFuzzer, a Python virtual environment
#   tools/setup.sh --format        clang-format
# ESPALIER_SKIP_SETUP=1 skips it, for systems whose packages were installed in another way.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache python3 dpkg-dev
  libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libutf8proc-dev libxxhash-dev
  libboost1.81-dev libssl-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  zlib1g-dev  # tests only: compressed fixtures
)
case "${1:-}" in
  "") ;;
  --acceptance) packages+=(g++-aarch64-linux-gnu qemu-user python3-venv clang libclang-rt-14-dev) ;;
  --format) packages=(clang-format) ;;
  *) echo "setup: unknown option '$1' (--acceptance, --format)" >&2; exit 2 ;;
esac

if [ "${ESPALIER_SKIP_SETUP:-0}" = 1 ]; then exit 0; fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  printf 'setup: this system has no apt. Install the equivalents of these Debian packages yourself:\n  %s\nthen run again with ESPALIER_SKIP_SETUP=1.\n' \
    "${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ $status == ii* ]] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages, and neither root nor sudo to install them: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@" </dev/null; }

echo "setup: installing ${missing[*]}"
for attempt in 1 2 3; do
  if apt update && apt install -y --no-install-recommends "${missing[@]}"; then exit 0; fi
  echo "setup: attempt $attempt failed" >&2
  sleep $((attempt * 5))
done
echo "setup: could not install ${missing[*]}" >&2
exit 1
