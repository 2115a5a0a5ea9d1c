# SPDX-License-Identifier: Apache-2.0
# The script for GPU machines, with programs that only pretend; bundle.sh runs it as part of a bundle, with those of this build.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME end_to_end.gpu_checks COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1
  ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/gpu_checks_test.py ${PROJECT_SOURCE_DIR}/tools/run-gpu-checks)
set_tests_properties(end_to_end.gpu_checks PROPERTIES LABELS end_to_end TIMEOUT 300)
