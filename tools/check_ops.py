#!/usr/bin/env python3
"""Finds operations that are not complete.

One op = one contract header src/ops/<op>.h = one pure virtual of Ops = one file <op>.cc in each folder of src/backend = one test
src/backend/<op>_test.cc = one benchmark BM_<Op> in bench/ops_bench.cc. The lists come from the folders, so a new op or backend is
checked as soon as its first file exists.

Usage: check_ops.py [ROOT]. Prints one line per gap; exit status 1 if there are any.
"""
import re
import sys
from pathlib import Path

# Headers of src/ops that several contracts share and that are no op themselves.
SHARED_HEADERS = {
    "ops": "the abstract set",
    "batch_view": "a batch as the ops see it",
    "kv_layout": "bytes of a KV page",
    "state_layout": "bytes of a state slot",
}


def camel_case(op):
    return "".join(word.capitalize() for word in op.split("_"))


def check(root):
    source = root / "src"
    contracts = {path.stem for path in (source / "ops").glob("*.h")} - set(SHARED_HEADERS)
    ops_header = source / "ops" / "ops.h"
    virtuals = set(re.findall(r"virtual void (\w+)\([^)]*\) = 0;", ops_header.read_text(encoding="utf-8"))) if ops_header.is_file() else set()
    backends = sorted(path for path in (source / "backend").iterdir() if path.is_dir())
    bench_file = root / "bench" / "ops_bench.cc"
    bench = bench_file.read_text(encoding="utf-8") if bench_file.is_file() else ""

    problems = []
    if not contracts:
        problems.append("src/ops: no contracts")
    if not backends:
        problems.append("src/backend: no backends")
    for op in sorted(contracts | virtuals):
        if op not in contracts:
            problems.append(f"{op}: in Ops, but src/ops/{op}.h is missing")
        if op not in virtuals:
            problems.append(f"{op}: no 'virtual void {op}(...) = 0;' in src/ops/ops.h (shared headers are listed in tools/check_ops.py)")
        for backend in backends:
            if not (backend / f"{op}.cc").is_file():
                problems.append(f"{op}: {backend.relative_to(root)}/{op}.cc is missing")
        if not (source / "backend" / f"{op}_test.cc").is_file():
            problems.append(f"{op}: src/backend/{op}_test.cc is missing")
        if not re.search(rf"\bBM_{camel_case(op)}\b", bench):
            problems.append(f"{op}: no BM_{camel_case(op)} in bench/ops_bench.cc")
    return problems


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    problems = check(root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
