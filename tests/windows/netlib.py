#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Netlib's BLAS testers, compiled by MinGW-w64, against tenon_blas.dll, by Wine.

  netlib.py EMULATOR DLL IMPORT_LIBRARY SOURCES WORK BACKEND

SOURCES is what tools/windows-dependencies --netlib unpacks: Debian's source of lapack. The programs are compiled into WORK once. The testers'
own XERBLA, by which they test the handling of wrong arguments, is not called by a DLL, whose references are bound when it is linked: those
tests are left out.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "end_to_end"))
import netlib  # noqa: E402 (of the folder above)

PREFIX = "x86_64-w64-mingw32-"


def names():
    """(program, letter, level, whether it tests the C interface)"""
    for level in "123":
        for letter in "sdcz":
            yield f"xblat{level}{letter}", letter, level, False
            yield f"x{letter}cblat{level}", letter, level, True


def run(*command):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"netlib.py: {' '.join(map(str, command))}: {done.stdout}{done.stderr}")


def build(sources, library, work):
    work.mkdir(parents=True, exist_ok=True)
    fortran = (PREFIX + "gfortran-posix", "-O1", "-w", "-std=legacy", "-static")
    cblas = sources / "CBLAS"
    shutil.copy(cblas / "include/cblas_mangling_with_flags.h.in", work / "cblas_mangling.h")
    for program, letter, level, is_c in names():
        out = work / f"{program}.exe"
        if out.is_file() and out.stat().st_mtime > library.stat().st_mtime:
            continue
        if not is_c:
            run(*fortran, sources / f"BLAS/TESTING/{letter}blat{level}.f", "-o", out, library)
            continue
        files = [f"c_{letter}blas{level}.c"] + ([f"c_{letter}{level}chke.c", "auxiliary.c", "c_xerbla.c"] if level != "1" else [])
        objects = []
        for file in files:
            objects.append(work / f"{program}-{file}.o")
            run(PREFIX + "gcc-posix", "-O1", "-w", "-DADD_", f"-I{cblas}/include", f"-I{work}", "-c", cblas / "testing" / file, "-o", objects[-1])
        run(*fortran, cblas / f"testing/c_{letter}blat{level}.f", *objects, "-o", out, library)


def input_of(sources, letter, level, is_c):
    """What the tester reads, without the tests of wrong arguments."""
    if level == "1":
        return ""
    file = sources / (f"CBLAS/testing/{letter}in{level}" if is_c else f"BLAS/TESTING/{letter}blat{level}.in")
    return re.sub(r"^T( +LOGICAL FLAG, T TO TEST ERROR EXITS)", r"F\1", file.read_text(), flags=re.M)


def main():
    emulator, dll, library, sources, work, backend = sys.argv[1:7]
    sources, work, dll = Path(sources), Path(work), Path(dll)
    build(sources, Path(library), work)
    folder = work / backend
    folder.mkdir(exist_ok=True)
    failures = passes = 0
    for program, letter, level, is_c in names():
        for old in folder.glob("*.out"):
            old.unlink()
        done = subprocess.run([emulator, work / f"{program}.exe"], input=input_of(sources, letter, level, is_c), capture_output=True, text=True, cwd=folder,
                              env=netlib.environment(backend, folder) | {"WINEPATH": "Z:" + str(dll.parent)})
        text = done.stdout + "".join(path.read_text() for path in folder.glob("*.out"))
        bad = [line for line in text.splitlines() if re.search(r"FAIL|\*{5}|FATAL", line)]
        found = text.count("PASS")
        passes += found
        if done.returncode or bad or not found or f"backend '{backend}' executes" not in done.stderr:
            failures += 1
            print(f"{program} on {backend}: exit code {done.returncode}, {found} PASS lines", *bad, text, done.stderr, sep="\n")
    print(f"{backend}: {passes} PASS lines, {failures} programs fail")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
