# SPDX-License-Identifier: Apache-2.0
# The OpenCL backend with drivers that are missing, lack something or fail.
find_library(TENON_OPENCL_LOADER NAMES libOpenCL.so.1)
if(TARGET tenon_backend_opencl AND TENON_OPENCL_LOADER)
  add_library(end_to_end_opencl_driver MODULE opencl_driver.c)
  target_include_directories(end_to_end_opencl_driver SYSTEM PRIVATE ${OPENCL_INCLUDE_DIRECTORY})
  target_link_libraries(end_to_end_opencl_driver PRIVATE -Wl,--no-as-needed ${TENON_OPENCL_LOADER} ${CMAKE_DL_LIBS}) # it calls the loader by names only
  set_target_properties(end_to_end_opencl_driver PROPERTIES C_EXTENSIONS ON PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/opencl_driver)
  add_test(NAME end_to_end.opencl COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/opencl.py
    $<TARGET_FILE:tenon_command> $<TARGET_FILE:tenon_backend_opencl> $<TARGET_FILE:end_to_end_opencl_driver>)
  set_tests_properties(end_to_end.opencl PROPERTIES LABELS end_to_end TIMEOUT 600 SKIP_RETURN_CODE 77
    ENVIRONMENT "TENON_LIBRARY=$<TARGET_FILE:tenon>;PYTHONPATH=${PROJECT_SOURCE_DIR}/runtime/python")
endif()
