#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh <build folder>: in a copy of the tree with Softsign: the generated files, its conformance on the CPU backends with its gradient
# check, and the tests that compare lists of ops.
build=$1
export PYTHONDONTWRITEBYTECODE=1
python3 tests/abi/digests.py --write
python3 tests/abi/layout.py write
cmake --build "$build" --target tenon_command tenon_backend_reference tenon_backend_openblas unit_sdk unit_graph unit_abi
"$build/bin/tenon" generate-docs --out plugins
ctest --test-dir "$build" --output-on-failure --no-tests=error \
  -R '^(conformance\.(reference|openblas)\.softsign|unit\.(sdk|graph|abi)|abi\.(layout|digests|guards)|end_to_end\.generate_docs|style\..*)$'
