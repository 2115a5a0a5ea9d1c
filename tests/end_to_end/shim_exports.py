#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The drop-in BLAS exports the symbols of the reference's libblas, derived from blas.def, and no others.

  shim_exports.py LIBRARY...
"""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "abi"))
from oplist import read_routines  # noqa: E402

EXTENSIONS = {"axpby", "iamin", "gemmt", "geam", "dgmm", "gemm_batched", "gemm_strided_batched"}
REAL_OF = {"s": "s", "d": "d", "c": "sc", "z": "dz"}  # functions whose result is real
MIXED = {"s": "s", "d": "d", "c": "cs", "z": "zd"}  # a complex vector and real numbers
NAMES = {
    "rot": lambda letter: MIXED[letter] + "rot",
    "rscal": lambda letter: MIXED[letter] + "scal",
    "nrm2": lambda letter: REAL_OF[letter] + "nrm2",
    "asum": lambda letter: REAL_OF[letter] + "asum",
    "iamax": lambda letter: f"i{letter}amax",
    "sdsdot": lambda letter: "sdsdot",
    "dsdot": lambda letter: "dsdot",
}
FUNCTIONS = {"dot", "dotu", "dotc", "sdsdot", "dsdot", "nrm2", "asum", "iamax"}
OTHERS = {"xerbla_", "xerbla_array_", "lsame_", "cblas_xerbla", "RowMajorStrg", "CBLAS_CallFromC"} | {
    name for letter in "sd" for name in (f"{letter}cabs1_", f"{letter}cabs1sub_", f"cblas_{letter}cabs1")
}


def expected_names():
    fortran, cblas, subroutines = set(), set(), set()
    for routine in read_routines():
        if routine.routine in EXTENSIONS:
            continue
        for letter in routine.dtypes:
            name = NAMES.get(routine.routine, lambda l: l + routine.routine)(letter)
            fortran.add(name + "_")
            cblas.add("cblas_" + name + ("_sub" if routine.routine in ("dotu", "dotc") else ""))
            if routine.routine in FUNCTIONS:
                subroutines.add(name + "sub_")
    return fortran, cblas, subroutines


def main():
    fortran, cblas, subroutines = expected_names()
    expected = fortran | cblas | subroutines | OTHERS
    failures = 0
    for library in sys.argv[1:]:
        lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines()
        found = {line.split()[-1].split("@")[0] for line in lines}
        for what, names in (("lacks", expected - found), ("exports unexpected", found - expected)):
            if names:
                print(f"{library} {what} {', '.join(sorted(names))}")
                failures += 1
        print(f"{library}: {len(fortran & found)} of Fortran 77, {len(cblas & found)} of CBLAS, "
              f"{len((subroutines | OTHERS) & found)} others")
    return 1 if failures or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
