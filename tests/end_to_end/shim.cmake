# SPDX-License-Identifier: Apache-2.0
# The drop-in BLAS: its exports, edge cases in a C program, NumPy and SciPy.
if(NOT WIN32)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(python ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE})
  if(NOT TENON_SANITIZE) # a sanitizer adds symbols and needs programs that are built with it
    add_test(NAME shim.exports COMMAND ${python} ${CMAKE_CURRENT_LIST_DIR}/shim_exports.py
      $<TARGET_FILE:tenon_blas> $<TARGET_FILE:tenon_blas_as_libblas>)
    set_tests_properties(shim.exports PROPERTIES LABELS end_to_end)
    foreach(package numpy scipy)
      add_test(NAME shim.${package} COMMAND ${python} ${CMAKE_CURRENT_LIST_DIR}/shim_python.py $<TARGET_FILE:tenon_blas> openblas ${package})
      set_tests_properties(shim.${package} PROPERTIES LABELS end_to_end TIMEOUT 300 SKIP_RETURN_CODE 77)
    endforeach()
  endif()

  find_package(Threads REQUIRED)
  add_executable(shim shim.c)
  target_link_libraries(shim PRIVATE tenon_blas tenon::flags Threads::Threads m)
  set_target_properties(shim PROPERTIES
    LINKER_LANGUAGE CXX # the library may need sanitizers
    C_EXTENSIONS ON # fork
    C_VISIBILITY_PRESET default) # the program defines xerbla_
  foreach(backend reference openblas)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/shim_${backend}.yaml "backends: {use: [${backend}]}\ndevice: ${backend}\n")
    add_test(NAME shim.edges.${backend} COMMAND shim)
    set_tests_properties(shim.edges.${backend} PROPERTIES LABELS end_to_end
      ENVIRONMENT "TENON_CONFIG=${CMAKE_CURRENT_BINARY_DIR}/shim_${backend}.yaml")
  endforeach()
  # The same on a device that cannot use host pointers.
  tenon_add_test_plugin(far far.c far FAR_OF="$<TARGET_FILE:tenon_backend_reference>")
  add_dependencies(end_to_end_far tenon_backend_reference)
  target_link_libraries(end_to_end_far PRIVATE ${CMAKE_DL_LIBS})
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/shim_far.yaml "backends: {search: [${cli_plugins}/far], use: [far]}\ndevice: far\n")
  add_test(NAME shim.edges.far COMMAND shim far)
  set_tests_properties(shim.edges.far PROPERTIES LABELS end_to_end ENVIRONMENT "TENON_CONFIG=${CMAKE_CURRENT_BINARY_DIR}/shim_far.yaml")
  add_test(NAME shim.edges.without COMMAND shim without)
  set_tests_properties(shim.edges.without PROPERTIES LABELS end_to_end ENVIRONMENT "TENON_CONFIG=${CMAKE_CURRENT_BINARY_DIR}/none.yaml")
endif()
