# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the Python package by pytest; without pytest or NumPy they are skipped."""
import sys

try:
    import numpy  # noqa: F401
    import pytest
except ImportError as error:
    print(f"skipped: {error}; tools/setup installs python3-pytest and python3-numpy, for Debian's python3")
    sys.exit(77)

sys.exit(pytest.main(["-q", "-rs", "-p", "no:cacheprovider", *sys.argv[1:]]))
