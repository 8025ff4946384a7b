# Every target sets itself up (tools/setup.sh); CMake and Ninja do the building. Start with `make demo`.
MODEL ?= models/espalier-nano
SESSION ?= examples/agent_session.jsonl
PREFIX ?= /usr/local

.PHONY: all demo test acceptance bench format install deb clean

all:
	tools/setup.sh
	cmake --preset release >/dev/null
	cmake --build --preset release

# A short agent session over HTTP on the small default model: streamed text, and for each turn the hot prompt tokens, time to first token and
# speed.
demo:
	tools/setup.sh
	cmake --preset release >/dev/null
	cmake --build --preset release --target espalier_cli
	tools/demo.sh $(MODEL) $(SESSION)

# Correctness, under 30 minutes from nothing on two cores. ESPALIER_TEST_STAGES="tools release" picks stages.
test:
	tools/setup.sh
	tools/test.sh

# The long runs: whole workloads, other architectures, libFuzzer.
acceptance:
	tools/setup.sh --acceptance
	tools/acceptance.sh

bench: all
	tools/bench.sh

format:
	tools/setup.sh --format
	git ls-files '*.cc' '*.h' | xargs clang-format -i

# Program, default model, documents and systemd unit below PREFIX.
install:
	tools/setup.sh
	cmake --preset release >/dev/null
	cmake --build --preset release --target espalier_cli
	cmake --install build/release --prefix $(PREFIX)

# The same as a Debian package in build/.
deb:
	tools/setup.sh
	cmake --preset release >/dev/null
	cmake --build --preset release --target espalier_cli
	packaging/make_deb.sh build/release build

clean:
	rm -rf build
