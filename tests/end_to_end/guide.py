#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""guide.py PREFIX SOURCE: runs every block of plugins/README.md in order, as an author would in an empty folder.

  sh     is run
  diff   is applied
  cpp, c that begin with a path in a comment become that file; others must occur in a file that the guide has built, in the header, or in backends/opencl
  yaml   is a conformance.yaml that the kit accepts
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def plain(text):
    return " ".join(text.split())


class Author:
    def __init__(self, prefix, source, place):
        self.prefix, self.source, self.place = prefix, source, place
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("TENON_") and k != "LD_LIBRARY_PATH"}
        self.environment.update(TENON_TEST_SIZE="small", TENON_PREFIX=str(prefix), PATH=f"{prefix}/bin:{os.environ['PATH']}")

    def run(self, command, **more):
        print("$", command if isinstance(command, str) else " ".join(map(str, command)), flush=True)
        done = subprocess.run(command, cwd=self.place, env=self.environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, **more)
        print(done.stdout, flush=True)
        if done.returncode != 0:
            sys.exit(f"exit code {done.returncode}")
        return done.stdout

    def sh(self, block):
        if shutil.which("gdb") is None:
            block = re.sub(r"^gdb .*?--args ", "", block, flags=re.M)
        out = self.run(["bash", "-e", "-c", block])
        if block.startswith("nm ") and [line.split()[-1] for line in out.splitlines()] != ["tenon_backend_query"]:
            sys.exit("expected the library to export only tenon_backend_query")
        if "conformance" in block and "gdb" not in block and not re.search(r"\b[1-9]\d* pass, 0 fail, 0 unsupported", out):
            sys.exit("expected at least one pass and no failure")

    def diff(self, block):
        if "offset" in self.run(["git", "apply", "-p0", "--verbose", "-"], input=block):
            sys.exit("expected the line numbers of the diff to be those of the file")

    def code(self, block):
        path = re.match(r"// (\S+/\S+\.\w+)\n", block)
        if path:
            (self.place / path[1]).write_text(block)
            return
        files = [*self.place.glob("*/*.[ch]*"), *self.place.glob("*/ops/*"), self.prefix / "include/tenon/backend.h",
                 *(self.source / "backends/opencl").rglob("*.[ch]*")]
        if not any(plain(block) in plain(file.read_text()) for file in files if file.is_file()):
            sys.exit(f"these lines occur neither in a file that the guide builds nor in backends/opencl:\n{block}")

    def yaml(self, block):
        folder = self.place / "waived"
        folder.mkdir()
        shutil.copy(self.place / "demo/build/libtenon_backend_demo.so", folder)
        (folder / "libtenon_backend_demo.conformance.yaml").write_text(block)
        self.run(["tenon", "conformance", "--plugin", folder / "libtenon_backend_demo.so", "--profile", "ops", "--filter", "relu/f32*"])


def main():
    prefix, source = map(Path, sys.argv[1:])
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", (source / "plugins/README.md").read_text(), flags=re.S | re.M)
    with tempfile.TemporaryDirectory() as place:
        author = Author(prefix.resolve(), source.resolve(), Path(place))
        kinds = {"sh": author.sh, "diff": author.diff, "c": author.code, "cpp": author.code, "yaml": author.yaml}
        for language, block in blocks:
            if language not in kinds:
                sys.exit(f"a block of language '{language}': expected one of {', '.join(kinds)}")
            kinds[language](block)
    print(f"{len(blocks)} blocks of plugins/README.md work")
    return 0 if blocks else 1


if __name__ == "__main__":
    sys.exit(main())
