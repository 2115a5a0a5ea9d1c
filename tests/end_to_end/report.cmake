# SPDX-License-Identifier: Apache-2.0
# The kit's reports as users open them: the page in a browser, JUnit's XML in a parser, the command that a failure prints in a shell.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(claim page junit again list usage)
  add_test(NAME end_to_end.report.${claim}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/report_test.py $<TARGET_FILE:tenon_command> $<TARGET_FILE:tenon_backend_template> ${claim})
  set_tests_properties(end_to_end.report.${claim} PROPERTIES LABELS end_to_end TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
