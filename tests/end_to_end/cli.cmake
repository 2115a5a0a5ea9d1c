# SPDX-License-Identifier: Apache-2.0
# The reporting verbs, against the CPU backends and test plugins.
set(cli_plugins ${CMAKE_CURRENT_BINARY_DIR}/plugins)
function(tenon_add_test_plugin name source backend)
  add_library(end_to_end_${name} MODULE ${source})
  target_link_libraries(end_to_end_${name} PRIVATE tenon::abi)
  target_compile_definitions(end_to_end_${name} PRIVATE ${ARGN})
  set_target_properties(end_to_end_${name} PROPERTIES
    C_EXTENSIONS ON # sleep, strsignal and the like
    OUTPUT_NAME tenon_backend_${backend} LIBRARY_OUTPUT_DIRECTORY ${cli_plugins}/${name})
endfunction()
tenon_add_test_plugin(fake_gpu fake_gpu.c fake_gpu)
set(cli_faults asked_crash created_crash created_hang created_exit created_abort closed_crash ended_crash)
foreach(fault IN LISTS cli_faults)
  string(TOUPPER ${fault} when)
  tenon_add_test_plugin(${fault} misbehaving.c misbehaving MISBEHAVES_WHEN=${when})
endforeach()

# Every function of cli.sh without arguments is a test.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/cli.sh lines REGEX "^[a-z_]+\\(\\) {")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cli.sh)
# doctor_json_keeps_its_schema needs a plugin of tests/fault.
set(cli_helpers full fail exits out_has out_lacks out_is err_has doctor_survives)
foreach(line IN LISTS lines)
  string(REGEX MATCH "^[a-z_]+" claim "${line}")
  if(NOT claim IN_LIST cli_helpers)
    add_test(NAME end_to_end.cli.${claim} COMMAND ${CMAKE_CURRENT_LIST_DIR}/cli.sh ${claim})
    set_tests_properties(end_to_end.cli.${claim} PROPERTIES LABELS end_to_end TIMEOUT 120
      ENVIRONMENT "TENON=$<TARGET_FILE:tenon_command>;PLUGINS=${cli_plugins};FAULTS=${PROJECT_BINARY_DIR}/tests/fault/plugins;CMAKE=${CMAKE_COMMAND};MODELS=${PROJECT_SOURCE_DIR}/models")
  endif()
endforeach()
