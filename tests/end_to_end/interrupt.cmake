# SPDX-License-Identifier: Apache-2.0
# Ctrl-C while a model trains.
add_test(NAME end_to_end.interrupt COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/interrupt.sh $<TARGET_FILE:tenon_command> ${PROJECT_SOURCE_DIR})
set_tests_properties(end_to_end.interrupt PROPERTIES LABELS end_to_end COST 50)
