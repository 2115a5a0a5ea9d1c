#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every fenced block of plugins/abi/README.md is quoted verbatim from a source that the tests compile and run.

A line with only an ellipsis in a comment, /* ... */, marks an omission. Indentation and line breaks are ignored.
"""
import re
import sys

from oplist import HEADERS, SOURCE

README = HEADERS / "README.md"
SOURCES = {
    "c": [*sorted((SOURCE / "plugins" / "template").glob("*.c")), *sorted((HEADERS / "tenon").glob("*.h"))],
    "text": [SOURCE / "plugins" / "sdk" / "tenon" / "sdk" / "random.h"],  # the specification in its comment
}


def plain(text):
    return " ".join(re.sub(r"^\s*//", "", text, flags=re.M).split())


def main():
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", README.read_text(), flags=re.S | re.M)
    problems = []
    for language, block in blocks:
        if language == "sh":
            continue
        if language not in SOURCES:
            problems.append(f"a block of language '{language}': expected one of {', '.join(SOURCES)}, sh")
            continue
        texts = [plain(path.read_text()) for path in SOURCES[language]]
        for piece in re.split(r"^\s*/\* \.\.\. \*/\n", block, flags=re.M):
            if piece.strip() and not any(plain(piece) in text for text in texts):
                names = ", ".join(str(path.relative_to(SOURCE)) for path in SOURCES[language])
                problems.append(f"these lines are in none of {names}:\n{piece}")
    print(*problems, sep="\n")
    if not problems:
        print(f"{len(blocks)} blocks of {README.relative_to(SOURCE)} quote existing code")
    return 1 if problems or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
