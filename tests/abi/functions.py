#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps runtime/tenon/elementwise_functions.h in step with ops.def: the ops that need nothing but one or two operands are functions.

  functions.py            compares; fails if the header is out of date
  functions.py --write    writes it, with the formulas of runtime/ops/<family>.cpp as comments
"""
import argparse
import re
import sys
import textwrap

from oplist import SOURCE, ListError, read_ops

HEADER = SOURCE / "runtime" / "tenon" / "elementwise_functions.h"
TOP = """\
// SPDX-License-Identifier: Apache-2.0
// tenon/elementwise_functions.h - elementwise ops without attributes as functions on values of a
// graph. Included by tenon/functions.h. Written by `python3 tests/abi/functions.py --write` from
// tenon/ops.def, never by hand.
#pragma once

#include <tenon/api.h>
#include <tenon/graph.h>

namespace tenon::ops {

"""
LISTS = """\
}  // namespace tenon::ops

// clang-format off
/// The functions above as X(op, function).
"""
BOTTOM = """\
// clang-format on
"""
KINDS = {  # the start of a schema -> list, parameters
    "x:T -> y:": ("TENON_UNARY_FUNCTIONS", ["Value x"]),
    "a:T b:T -> y:T": ("TENON_BINARY_FUNCTIONS", ["Value a, Value b", "Value a, double b"]),
    "a:T b:T -> y:bool": ("TENON_BINARY_BOOL_FUNCTIONS", ["Value a, Value b"]),
}


def formula(op):
    """The first string of the op's record in runtime/ops."""
    path = SOURCE / "runtime" / "ops" / f"{op.family}.cpp"
    record = re.search(rf'const OpRules rules_{op.stem}\{{\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', path.read_text())
    if not record:
        raise ListError(f"{path}: expected `const OpRules rules_{op.stem}{{\"...`, found none")
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', record.group(1)))


def text():
    declarations, lists = [], {name: [] for name, _ in KINDS.values()}
    for op in read_ops():
        if op.indexing != "pointwise" or op.attributes != "none":
            continue
        for start, (name, forms) in KINDS.items():
            if op.schema.startswith(start):
                lists[name].append(f"X({op.name}, {op.stem})")
                declarations += textwrap.wrap(formula(op), 100, initial_indent="/// ", subsequent_indent="/// ")
                declarations += [
                    f"TENON_API Value {op.stem}({parameters});" + ("  ///< b is a constant of a's dtype" if "double" in parameters else "")
                    for parameters in forms
                ]
    made = TOP + "\n".join(declarations) + "\n\n" + LISTS
    for name, entries in lists.items():
        lines = [f"#define {name}(X)", *textwrap.wrap("\0".join(entries).replace(" ", "\1").replace("\0", " "), 94,
                                                      initial_indent="  ", subsequent_indent="  ")]
        made += " \\\n".join(lines).replace("\1", " ") + "\n"
    return made + BOTTOM


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the header")
    arguments = parser.parse_args()
    made = text()
    is_current = HEADER.exists() and HEADER.read_text() == made
    if arguments.write and not is_current:  # else it keeps its date, and nothing is compiled again
        HEADER.write_text(made)
    elif not is_current:
        print(f"{HEADER.relative_to(SOURCE)} is out of date: run python3 tests/abi/functions.py --write", file=sys.stderr)
        return 1
    print(f"{made.count('TENON_API')} functions agree with ops.def")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ListError as error:
        sys.exit(str(error))
