#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh <build folder>: in a copy of the tree with Softsign: the generated files, its conformance on the CPU backends with its gradient
# check, and the tests that compare lists of ops.
build=$1
export PYTHONDONTWRITEBYTECODE=1
python3 tests/abi/digests.py --write
python3 tests/abi/layout.py write
python3 tests/abi/functions.py --write
cmake --build "$build" --parallel "${TENON_JOBS:-2}" --target tenon_command tenon_conformance_command tenon_backend_reference tenon_backend_openblas unit_graph
"${CXX:-c++}" -std=c++20 -fsyntax-only -Iruntime -Iplugins/abi -xc++ - <<<'#include <tenon/tenon.h>
tenon::Value of_value(tenon::Value x) { return tenon::ops::softsign(x); }
tenon::Tensor of_tensor(const tenon::Tensor& x) { return tenon::softsign(x); }'
"$build/bin/tenon" generate-docs --out plugins
ctest --test-dir "$build" --output-on-failure --no-tests=error \
  -R '^(conformance\.(reference|openblas)\.softsign|unit\.graph|abi\.(layout|digests|functions|guards)|end_to_end\.generate_docs|style\..*)$'
