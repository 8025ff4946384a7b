#!/usr/bin/env python3
"""Write src/tokenizer/unicode_classes.inc from the character classes of the reference regex engine.

Usage: tools/make_unicode_classes.py [CLASSES.json [OUT.inc]]
CLASSES.json holds inclusive code point ranges under "L", "M", "N" and "S" (\\p{L}, \\p{M}, \\p{N}, \\s). The result is committed: pieces
must not change with the Unicode version of whatever library a build happens to find.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = (("L", "kLetterRanges", r"\p{L}"), ("M", "kMarkRanges", r"\p{M}"), ("N", "kNumberRanges", r"\p{N}"), ("S", "kSpaceRanges", r"\s"))
PER_LINE = 8


def check(ranges_by_class):
    """Ranges ascend and no code point has two classes: the scanner keeps one class a code point."""
    owner = {}
    for name, _, _ in TABLES:
        last = -1
        for low, high in ranges_by_class[name]:
            if not last < low <= high <= 0x10FFFF:
                raise SystemExit(f"class {name}: range {low:#x}..{high:#x} is out of order")
            last = high
            for code_point in range(low, high + 1):
                if owner.setdefault(code_point, name) != name:
                    raise SystemExit(f"U+{code_point:04X} is in {owner[code_point]} and in {name}")


def render(ranges_by_class):
    lines = ["// Written by tools/make_unicode_classes.py; inclusive ranges of code points.", "// clang-format off"]
    for name, variable, pattern in TABLES:
        ranges = ranges_by_class[name]
        count = sum(high - low + 1 for low, high in ranges)
        lines.append(f"constexpr CodePointRange {variable}[] = {{  // {pattern}: {count} code points")
        cells = [f"{{0x{low:X}, 0x{high:X}}}," for low, high in ranges]
        lines += ["    " + " ".join(cells[i : i + PER_LINE]) for i in range(0, len(cells), PER_LINE)]
        lines.append("};")
    lines.append("// clang-format on")
    return "\n".join(lines) + "\n"


def main():
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "../shared/oracle/tokenizer/unicode_classes.json"
    target = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "src/tokenizer/unicode_classes.inc"
    ranges_by_class = json.loads(source.read_text(encoding="utf-8"))
    check(ranges_by_class)
    target.write_text(render(ranges_by_class), encoding="ascii")


if __name__ == "__main__":
    main()
