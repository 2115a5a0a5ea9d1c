#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that what CONTRIBUTING.md says about adding something is all there is to do.

additions.py WHAT takes additions/WHAT: in a copy of the tracked tree it adds the files of files/, inserts the lines of edits.txt,
configures a build without optimisation and runs check.sh with the build folder as its argument. Each added or edited file has to be in
the row "a WHAT" of CONTRIBUTING.md's table; besides them, check.sh may only change generated files.

edits.txt has lines `FILE: insert after "TEXT": LINE`; TEXT has to occur in one line of the file, after which LINE is inserted. Several
edits after the same text keep their order.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EDIT = re.compile(r'^(?P<file>[^:]+): insert after "(?P<after>.*?)":(?: (?P<line>.*))?$')
GENERATED = {"plugins/abi/tenon/op_digests.h", "tests/abi/layout.txt", "runtime/tenon/elementwise_functions.h", "plugins/ops.md",
             "plugins/blas.md"}


def row_of(what, page):
    """The cell of CONTRIBUTING.md that says which files to touch."""
    row = re.search(rf"^\| an? {re.escape(what)} \| (.*) \|$", page, re.M)
    if not row:
        sys.exit(f"CONTRIBUTING.md: expected a row 'a {what}' in the table, found none")
    return row.group(1)


def patterns(row):
    """Regular expressions for the paths of a row: <name> stands for any word and {a,b} for one of its parts; runtime/ may be left out."""
    found = []
    for path in re.findall(r"`([^`]+)`", row):
        pattern = re.escape(path).replace(r"\{", "(?:").replace(r"\}", ")").replace(",", "|")
        found.append(re.compile("(?:runtime/)?" + re.sub(r"<[^>]+>", r"[a-z0-9_]+", pattern)))
    return found


def tracked(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True)
    if listed.returncode != 0:
        print("skipped: no git checkout, which says what is tracked")
        sys.exit(77)
    return [name for name in listed.stdout.split("\0") if name and (root / name).exists()]


def copy_tree(root, names, copy):
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, copy / name, follow_symlinks=False)


def add_files(addition, copy):
    """Copies the files of the addition. Returns their names."""
    added = [str(path.relative_to(addition / "files")) for path in sorted((addition / "files").rglob("*")) if path.is_file()]
    for name in added:
        if (copy / name).exists():
            sys.exit(f"{addition.name}: files/{name} exists in the tree: expected a new file")
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(addition / "files" / name, copy / name)
    return added


def insert_lines(addition, copy):
    """Applies edits.txt. Returns the names of the edited files."""
    edits = []
    for number, text in enumerate((addition / "edits.txt").read_text().splitlines(), 1):
        match = EDIT.match(text)
        if not match:
            sys.exit(f'{addition.name}/edits.txt:{number}: expected `FILE: insert after "TEXT": LINE`, got `{text}`')
        edits.append(match.groupdict(default=""))
    for edit in reversed(edits):  # so that edits after the same text keep their order
        lines = (copy / edit["file"]).read_text().splitlines(keepends=True)
        places = [i for i, line in enumerate(lines) if edit["after"] in line]
        if len(places) != 1:
            sys.exit(f"{edit['file']}: expected '{edit['after']}' in one line, got {len(places)}")
        lines.insert(places[0] + 1, edit["line"] + "\n")
        (copy / edit["file"]).write_text("".join(lines))
    return sorted({edit["file"] for edit in edits})


def run(command, **options):
    print("+", *command, flush=True)
    result = subprocess.run(command, **options)
    if result.returncode != 0:
        sys.exit(f"{command[0]} failed: {result.returncode}")


def git(copy, *arguments):
    return subprocess.run(["git", "-C", copy, *arguments], check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=sorted(path.name for path in (HERE / "additions").iterdir()))
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1])
    parser.add_argument("--keep", type=pathlib.Path, help="make the copy here, and leave it")
    arguments = parser.parse_args()
    root, addition = arguments.root.resolve(), HERE / "additions" / arguments.what
    allowed = patterns(row_of(arguments.what, (root / "CONTRIBUTING.md").read_text()))

    with tempfile.TemporaryDirectory() as temporary:
        copy = (arguments.keep or pathlib.Path(temporary) / "tree").resolve()
        copy_tree(root, tracked(root), copy)
        git(copy, "init", "-q")
        touched = add_files(addition, copy) + insert_lines(addition, copy)
        for name in touched:
            if not any(pattern.fullmatch(name) for pattern in allowed):
                sys.exit(f"{name} has to be touched to add '{arguments.what}', but the row of CONTRIBUTING.md does not name it")
        git(copy, "add", "--all")

        build = copy / "build" / "addition"
        launcher = []
        environment = dict(os.environ, CCACHE_BASEDIR=str(copy), CCACHE_NOHASHDIR="1", CCACHE_DEPEND="1",
                           CCACHE_SLOPPINESS="pch_defines,time_macros")
        if shutil.which("ccache"):
            launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
        run(["cmake", "-G", "Ninja", "-S", str(copy), "-B", str(build), "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0",
             "-DCMAKE_C_FLAGS_DEBUG=-O0", "-DTENON_WARNINGS_AS_ERRORS=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON", *launcher],
            env=environment, stdout=subprocess.DEVNULL)
        run(["bash", "-euo", "pipefail", str(addition / "check.sh"), str(build)], cwd=copy, env=environment)

        changed = set(git(copy, "diff", "--name-only").split()) | set(git(copy, "ls-files", "--others", "--exclude-standard").split())
        if changed - GENERATED:
            sys.exit(f"check.sh changed files that are not generated: {', '.join(sorted(changed - GENERATED))}")
    print(f"{arguments.what}: added by {', '.join(touched)}; generated: {', '.join(sorted(changed)) or 'nothing'}")


if __name__ == "__main__":
    main()
