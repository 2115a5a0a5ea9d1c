# SPDX-License-Identifier: Apache-2.0
# train, eval, predict, summary, export and quantize as users run them.
add_test(NAME end_to_end.released_run COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/released_run.sh $<TARGET_FILE:tenon_command>
  ${PROJECT_SOURCE_DIR}/tests/abi/archive/1.0/run)
set_tests_properties(end_to_end.released_run PROPERTIES LABELS end_to_end)
add_test(NAME end_to_end.train COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/train.sh $<TARGET_FILE:tenon_command> ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.real_data COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/real_data.sh $<TARGET_FILE:tenon_command> ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.export COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/export.sh $<TARGET_FILE:tenon_command> ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.quantize COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/quantize.sh $<TARGET_FILE:tenon_command> ${PROJECT_SOURCE_DIR})
set_tests_properties(end_to_end.train end_to_end.real_data end_to_end.export end_to_end.quantize PROPERTIES LABELS end_to_end SKIP_RETURN_CODE 77)
