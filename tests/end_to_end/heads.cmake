# SPDX-License-Identifier: Apache-2.0
# A model with several inputs and outputs.
add_test(NAME end_to_end.heads COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/heads.py $<TARGET_FILE:tenon_command>)
set_tests_properties(end_to_end.heads PROPERTIES LABELS end_to_end)
