#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the system's NumPy or SciPy on the drop-in BLAS, on the backend of a configuration.

  shim_python.py LIBRARY BACKEND numpy|scipy

Checks a product and the log line that names the backend, then runs the package's own linear-algebra tests.
"""
import os
import subprocess
import sys
import tempfile

from netlib import environment

PYTHON = "/usr/bin/python3"  # its NumPy is linked to libblas.so.3
TESTS = {"numpy": ["numpy.linalg"], "scipy": ["scipy.linalg.tests.test_blas", "scipy.linalg.tests.test_fblas"]}
PRODUCTS = {
    "numpy": "import numpy; a = numpy.arange(12.0).reshape(3, 4); assert (a @ a.T)[2, 2] == 366, a @ a.T",
    "scipy": "from scipy.linalg import blas; assert (blas.dgemm(1.0, [[1, 2], [3, 4]], [[5, 6], [7, 8]]) == [[19, 22], [43, 50]]).all()",
}


def skipped(reason):
    print(f"skipped: {reason}; run tools/setup")
    return 77


def main():
    library, backend, package = sys.argv[1:4]
    if not os.path.exists(PYTHON):
        return skipped(f"{PYTHON} not found")
    for name in (package, "pytest", "hypothesis"):  # NumPy's tests need the last
        if subprocess.run([PYTHON, "-c", f"import {name}"], capture_output=True).returncode:
            return skipped(f"{PYTHON} has no {name}")
    linked = subprocess.run(["ldd", *subprocess.run(
        [PYTHON, "-c", "import numpy.core._multiarray_umath as m; print(m.__file__)"], capture_output=True, text=True).stdout.split()],
        capture_output=True, text=True).stdout
    if "libblas.so.3" not in linked:
        return skipped(f"the NumPy of {PYTHON} is not linked to libblas.so.3")

    with tempfile.TemporaryDirectory() as scratch:
        setting = environment(backend, scratch) | {"LD_PRELOAD": library, "PYTHONDONTWRITEBYTECODE": "1"}
        product = subprocess.run([PYTHON, "-c", PRODUCTS[package]], capture_output=True, text=True, env=setting, cwd=scratch)
        if product.returncode or f"backend '{backend}' executes" not in product.stderr:
            print(f"{package}: a product on '{backend}': exit code {product.returncode}", product.stdout, product.stderr, sep="\n")
            return 1
        command = [PYTHON, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-m", "not slow", "--pyargs", *TESTS[package]]
        return subprocess.run(command, env=setting, cwd=scratch, stderr=subprocess.STDOUT).returncode


if __name__ == "__main__":
    sys.exit(main())
