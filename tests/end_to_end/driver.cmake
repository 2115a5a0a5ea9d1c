# SPDX-License-Identifier: Apache-2.0
# The CUDA backend on machines whose driver is missing, too old or broken.
if(TARGET tenon_backend_cuda)
  set(stub_driver ${CMAKE_CURRENT_BINARY_DIR}/stub_driver)
  add_library(end_to_end_stub_driver SHARED stub_driver.c)
  target_link_libraries(end_to_end_stub_driver PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(end_to_end_stub_driver PROPERTIES
    C_EXTENSIONS ON OUTPUT_NAME cuda SUFFIX .so.1 LIBRARY_OUTPUT_DIRECTORY ${stub_driver})
  add_test(NAME end_to_end.driver
    COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/driver.sh $<TARGET_FILE:tenon_command> ${stub_driver})
  set_tests_properties(end_to_end.driver PROPERTIES LABELS end_to_end TIMEOUT 120)
endif()
