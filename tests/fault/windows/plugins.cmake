# SPDX-License-Identifier: Apache-2.0
# Plugins that only Windows refuses. Fills `system_faults`.
# A plugin next to a DLL of the right name that lacks the function it imports. Wine opens it, and ends the process at the call.
set(lacking ${CMAKE_CURRENT_BINARY_DIR}/missing_function)
add_fault_plugin(missing_function needs_absent.c)
target_link_libraries(fault_missing_function PRIVATE fault_absent)
add_library(fault_other_absent SHARED windows/crash.c)
target_include_directories(fault_other_absent PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
set_target_properties(fault_other_absent PROPERTIES OUTPUT_NAME tenon_absent
  RUNTIME_OUTPUT_DIRECTORY ${lacking} ARCHIVE_OUTPUT_DIRECTORY ${lacking})
set_target_properties(fault_missing_function PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${lacking})
add_dependencies(fault_missing_function fault_other_absent)
set(system_faults missing_function)
