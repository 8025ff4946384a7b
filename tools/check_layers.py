#!/usr/bin/env python3
"""Checks every #include under src/ against the layer table of ARCHITECTURE.md.

A file may include its own folder and what the "may include" cell of its row names: folders, single headers, or `all`. The row
of a file is the longest folder that contains it, so a sub-folder with a row of its own is a layer of its own. Tests beside their
subject (*_test.cc, *_test_support.*) may also name the concrete backends and tests/support. A third-party library is included
by one file of src/, behind a header of ours; a folder that exists to wrap a library may use it in several .cc files, never in a
header. tests/, bench/ and fuzz/ are free to include what they use. Kernels compiled for one instruction set include only each
other and headers without code: what they instantiate would be linked into the whole program.

Usage: check_layers.py [ROOT]. Prints one line per violation, "file:line: reason"; exit status 1 if there are any.
"""
import re
import sys
from pathlib import Path

SOURCE_SUFFIXES = {".h", ".cc", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
TEST_FILE = re.compile(r"_test(_support)?\.(cc|h)$")
TEST_ONLY_FOLDERS = {"backend/reference", "backend/cpu", "backend/cuda"}
TEST_ONLY_LIBRARIES = {"gtest", "gmock"}
FOLDER_LIBRARIES = {"boost": "http", "openssl": "http"}  # wrapped by a folder instead of one file

KERNEL_FOLDER = "backend/cpu/kernels/"
KERNEL_HEADERS = {"arm_bf16.h", "arm_neon.h", "cstddef", "cstdint", "immintrin.h"}

# Headers of the C library, the operating system and the compiler, which any file may include. C++ headers have no suffix.
SYSTEM_FOLDERS = ("sys/", "linux/", "asm/", "arpa/", "netinet/", "sanitizer/")
SYSTEM_HEADERS = {
    "arm_bf16.h", "arm_neon.h", "cpuid.h", "cxxabi.h", "dirent.h", "dlfcn.h", "errno.h", "execinfo.h", "fcntl.h", "fenv.h", "float.h",
    "immintrin.h", "inttypes.h", "limits.h", "malloc.h", "math.h", "netdb.h", "poll.h", "pthread.h", "pwd.h", "sched.h", "signal.h",
    "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "termios.h", "time.h", "unistd.h", "x86intrin.h", "xmmintrin.h",
}


def read_table(architecture):
    """{folder: set of allowed folders and headers} from the rows `src/...` of the first table with a "may include" column."""
    rows = {}
    in_table = False
    for line in architecture.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[-1].lower() == "may include":
            in_table = True
        elif in_table and not line.lstrip().startswith("|"):
            break
        elif in_table and cells[0].startswith("`src/"):
            folder = cells[0].strip("`").removeprefix("src/").rstrip("/")
            allowed = {entry.strip().strip("`") for entry in cells[-1].split(",")}
            rows[folder] = {entry for entry in allowed if entry not in {"", "–", "-"}}
    return rows


def row_of(path, rows):
    """The longest folder of the table that contains `path` (relative to src/), or None."""
    parents = [str(parent) for parent in Path(path).parents]
    return next((parent for parent in parents if parent in rows), None)


def library_of(header):
    """The third-party library an angle-bracket header belongs to, or None for the language and the system."""
    if header.startswith(SYSTEM_FOLDERS) or header in SYSTEM_HEADERS or "." not in header:
        return None
    return header.split("/")[0].removesuffix(".h").removesuffix(".hpp")


def allowed(including, included, rows):
    """Why `including` must not include `included` (both relative to src/), or None."""
    row = row_of(including, rows)
    target = row_of(included, rows)
    if target is None:
        return f'"{included}" lies in no folder of the layer table (includes are written from src/)'
    may = rows[row]
    if target == row or "all" in may or target in may or included in may:
        return None
    if TEST_FILE.search(including) and target in TEST_ONLY_FOLDERS:
        return None
    return f'src/{row} may not include "{included}"'


def check(root):
    rows = read_table((root / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    if not rows:
        return ['ARCHITECTURE.md:1: no layer table (a column "may include" with rows `src/...`)']
    problems = []
    for folder, may in sorted(rows.items()):
        for entry in sorted(may - {"all"}):
            if entry not in rows and not (entry.endswith(".h") and row_of(entry, rows)):
                problems.append(f"ARCHITECTURE.md:1: row src/{folder} allows '{entry}', which is neither a row nor a header of one")
    users = {}  # library -> {file: line of the first include}
    source_root = root / "src"
    for path in sorted(p for p in source_root.rglob("*") if p.suffix in SOURCE_SUFFIXES):
        name = path.relative_to(source_root).as_posix()
        is_test = bool(TEST_FILE.search(name))
        if row_of(name, rows) is None:
            problems.append(f"src/{name}:1: its folder has no row in the layer table of ARCHITECTURE.md")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            match = INCLUDE.match(line)
            if not match:
                continue
            ours, theirs = match.groups()
            where = f"src/{name}:{number}"
            if name.startswith(KERNEL_FOLDER) and not is_test and not (theirs in KERNEL_HEADERS or (ours or "").startswith(KERNEL_FOLDER)):
                problems.append(f"{where}: a kernel may not include {ours or theirs}")
            if theirs:
                library = library_of(theirs)
                if library and not (is_test and library in TEST_ONLY_LIBRARIES):
                    users.setdefault(library, {}).setdefault(f"src/{name}", number)
            elif is_test and ours.startswith("tests/") and (root / ours).is_file():
                continue
            elif reason := allowed(name, ours, rows):
                problems.append(f"{where}: {reason}")
    for library, files in sorted(users.items()):
        if library in FOLDER_LIBRARIES:
            folder = f"src/{FOLDER_LIBRARIES[library]}/"
            for file, number in sorted(files.items()):
                if not (file.startswith(folder) and file.endswith(".cc")):
                    problems.append(f"{file}:{number}: <{library}> belongs in the .cc files of {folder}")
        elif len(files) > 1:
            for file, number in sorted(files.items()):
                others = ", ".join(sorted(set(files) - {file}))
                problems.append(f"{file}:{number}: <{library}> is also included by {others}; one file wraps a library")
    return problems


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    problems = check(root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
