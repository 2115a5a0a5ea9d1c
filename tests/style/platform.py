#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what differs between operating systems in runtime/core/platform: elsewhere no file asks for the system, includes headers of one
system, turns paths into narrow strings, or uses what MinGW's C++ library does wrong. Folders named posix and windows, of which CMake takes
one, are free to; platform.txt has the other exceptions.

Usage: platform.py [--root FOLDER] | --self-test
"""
import argparse
import contextlib
import fnmatch
import io
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
OF_SYSTEM = {"posix", "windows"}  # folders of which CMake takes one
TOPS = ["runtime", "plugins", "backends", "tools", "tests"]
SUFFIXES = {".h", ".c", ".cpp", ".cu", ".cuh"}
SWITCH = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(_WIN32|_WIN64|__MINGW\w+|__CYGWIN__|__linux__|__unix__|__APPLE__|__GLIBC__|_POSIX_\w+)\b")
HEADER = re.compile(
    r'^\s*#\s*include\s*<((sys|net|netinet|arpa|linux|mach)/\S+|unistd\.h|fcntl\.h|dlfcn\.h|pthread\.h|sched\.h|signal\.h|spawn\.h|poll\.h'
    r"|pwd\.h|grp\.h|glob\.h|dirent\.h|link\.h|elf\.h|semaphore\.h|termios\.h|strings\.h|windows\.h|winsock2\.h|io\.h|direct\.h|process\.h"
    r"|psapi\.h|dbghelp\.h)>")
# Names of files as narrow strings are UTF-8 nowhere but in the functions of platform/path.h.
NARROW = re.compile(r"(\.(generic_)?string\(\)|\bfs::path\((?!path|entry)\w|\bfilesystem::path\((?!path)\w)")
# What MinGW's C++ library has and does wrong: waiting on atomics loses wake-ups, locks shared by
# readers are no locks at their first use, and thread_local objects are freed before they are destroyed.
UNSAFE = [
    (re.compile(r"\bstd::shared_(timed_)?mutex\b"), "which lets two threads in on Windows: use tenon/sdk/shared_mutex.h"),
    (re.compile(r"\bstd::(latch|barrier|(binary|counting)_semaphore)\b"),
     "which loses wake-ups on Windows: use platform/wait.h, or a mutex and a condition variable"),
    (re.compile(r"\bthread_local\s+(?:const\s+|constinit\s+)*(?!std::u?int|const\b|constinit\b)(std::\w+[^*;]*|[A-Z]\w*(?!\w))\s+\w+(?:\{|;|\s*=)"),
     "whose memory is freed before its destructor is called on Windows: use platform/per_thread.h"),
]
NARROW_TOPS = ("runtime/", "plugins/loader/", "tools/cli/")


def read_exceptions(path):
    """(glob, reason) of each line."""
    exceptions = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        glob, colon, reason = line.partition(":")
        if not colon or not reason.strip():
            sys.exit(f"{path}:{number}: expected `glob: reason`, got '{line}'")
        exceptions.append((glob.strip(), reason.strip()))
    return exceptions


def findings(root):
    """(file, line, what) of each place, outside runtime/core/platform."""
    for path in sorted(p for top in TOPS for p in (root / top).rglob("*")):
        file = path.relative_to(root).as_posix()
        if path.suffix not in SUFFIXES or not path.is_file() or file.startswith("runtime/core/platform/") or OF_SYSTEM & set(path.parts):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if match := SWITCH.match(line):
                yield file, number, f"asks for {match[2]}"
            elif match := HEADER.match(line):
                yield file, number, f"includes {match[1]}"
            elif unsafe := next(((m, why) for pattern, why in UNSAFE if (m := pattern.search(line.split("//")[0]))), None):
                yield file, number, f"has '{unsafe[0][0].strip()}', {unsafe[1]}"
            elif file.startswith(NARROW_TOPS) and (match := NARROW.search(line.split("//")[0])):
                yield file, number, f"has '{match[1]}', which is not UTF-8 on Windows: use platform::text_of or platform::path_of"


def check(root):
    """Prints each finding without an exception, and each exception without a finding. Returns their number."""
    exceptions = read_exceptions(root / "tests/style/platform.txt")
    used, wrong = set(), 0
    for file, number, what in findings(root):
        matching = [glob for glob, _ in exceptions if fnmatch.fnmatchcase(file, glob)]
        used.update(matching)
        if not matching:
            wrong += 1
            print(f"{file}:{number}: {what}")
    if wrong:
        print(f"{wrong} places differ between operating systems; move them to runtime/core/platform (tests/style/platform.txt)")
    for glob, _ in exceptions:
        if glob not in used:
            wrong += 1
            print(f"tests/style/platform.txt: '{glob}' is an exception for nothing; remove the line")
    return wrong


def self_test():
    """Each kind of wrong line is found, and an exception that has become useless."""
    lines = ["#if defined(_WIN32)", "#include <unistd.h>", "  # include <sys/mman.h>", "#ifdef __linux__", "#include <windows.h>",
             "  const std::string text = path.string();", "  open(std::filesystem::path(name));", "thread_local std::string text;", "  static thread_local Buffers buffers{};",
             "  std::binary_semaphore done{0};", "std::shared_mutex mutex;"]
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        (root / "tests/style").mkdir(parents=True)
        (root / "runtime/core/platform/posix").mkdir(parents=True)
        exceptions, file = root / "tests/style/platform.txt", root / "runtime/core/file.cpp"
        (root / "runtime/core/platform/posix/file.cpp").write_text("\n".join(lines))
        exceptions.write_text("# none\n")
        for line in lines:
            file.write_text(f"// #if defined(_WIN32)\n{line}\n")
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                found = check(root)
            assert found == 1 and output.getvalue().startswith("runtime/core/file.cpp:2: "), f"{line}: {output.getvalue()}"
        exceptions.write_text("runtime/core/file.cpp: a reason\n")
        assert check(root) == 0
        file.write_text("int x;\n")
        with contextlib.redirect_stdout(io.StringIO()):
            assert check(root) == 1
    print(f"{len(lines)} wrong lines were found")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1])
    parser.add_argument("--self-test", action="store_true", help="show that wrong lines are found")
    arguments = parser.parse_args()
    if arguments.self_test:
        self_test()
        return 0
    return 1 if check(arguments.root.resolve()) else 0


if __name__ == "__main__":
    sys.exit(main())
