#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""yaml_reference.py TENON SOURCE: docs/yaml.md names every key that the readers know, and no other.

`tenon config print --schema` has them: the configuration as YAML, then the keys of each file and thing as comments.
"""
import re
import subprocess
import sys
from pathlib import Path

# Tables of the page.
KINDS = {"layer", "initializer", "source", "loss", "metric", "optimizer", "schedule", "callback"}
# Names that are documented in prose.
PROSE = {"layer": {"repeat"}}


def read_schema(text):
    """The configuration as YAML, and the keys of each block: {"layer dense": {"units", ...}, "train.yaml": ...}."""
    yaml, rest = text.split("\n# train.yaml\n", 1)
    blocks = {}
    for block in ("train.yaml\n" + rest).split("\n\n# "):
        title, *lines = block.strip().split("\n")
        blocks[title] = {re.match(r"#   (\w+)", line)[1] for line in lines}
    return yaml, blocks


def keys_in(cell):
    return set(re.findall(r"`(\w+)`", cell))


def compare(what, documented, expected):
    for key in sorted(expected - documented):
        print(f"{what}: '{key}' is missing in docs/yaml.md")
    for key in sorted(documented - expected):
        print(f"{what}: docs/yaml.md has '{key}', which the reader does not know")
    return documented == expected


def main(tenon, source):
    page = (source / "docs/yaml.md").read_text()
    paragraphs = [" ".join(p.split()) for p in page.split("\n\n")]
    every = {m[1]: keys_in(m[2]) for p in paragraphs if (m := re.match(r"Every (\w+) also takes (.*)", p))}
    groups = {m[1]: re.sub(r"\([^)]*\)", "", m[2]) for p in paragraphs if (m := re.match(r"The \*(\w+ keys)\* are (.*)", p))}
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, flags=re.S | re.M)
    schema, known = read_schema(subprocess.run([tenon, "config", "print", "--schema"], text=True, stdout=subprocess.PIPE, check=True).stdout)
    good, names = True, {}
    if blocks[2] != schema:
        good = False
        print("the last block of docs/yaml.md is not the beginning of the output of `tenon config print --schema`: replace it")

    for table in re.findall(r"(?:^\|.*\n)+", page, flags=re.M):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        kind = rows[0][0]
        if kind not in KINDS:
            continue
        for row in rows[2:]:
            cell = row[rows[0].index("keys")]
            for group, keys in groups.items():
                cell = cell.replace(group, keys)
            for name in re.findall(r"`(\w+)`", row[0]):
                names.setdefault(kind, set()).add(name)
                good &= compare(f"{kind} {name}", keys_in(cell) | every.get(kind, set()), known.get(f"{kind} {name}", set()))
    for kind in KINDS:
        expected = {title.split()[1] for title in known if title.startswith(kind + " ")}
        good &= compare(f"names of a {kind}", names.get(kind, set()), expected - PROSE.get(kind, set()))
    top = [set(re.findall(r"^(\w+):", block, flags=re.M)) for block in blocks]
    good &= compare("model.yaml", top[0], known["model.yaml"])
    good &= compare("train.yaml", top[1] - top[2], known["train.yaml"])
    return 0 if good else 1


sys.exit(main(sys.argv[1], Path(sys.argv[2])))
