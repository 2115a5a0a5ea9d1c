# SPDX-License-Identifier: Apache-2.0
# Netlib's test programs against the drop-in BLAS: netlib.<backend>.<program>, in long runs long.netlib.opencl.<program>; each must print the
# lines that pass on netlib's own libblas.
if(NOT TENON_SANITIZE AND NOT WIN32) # the programs are not built with a sanitizer
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(netlib_passes
    xblat1s:13 xblat1d:13 xblat1c:10 xblat1z:10
    xblat2s:33 xblat2d:33 xblat2c:35 xblat2z:35
    xblat3s:13 xblat3d:13 xblat3c:19 xblat3z:19
    xscblat1:10 xdcblat1:10 xccblat1:10 xzcblat1:10
    xscblat2:49 xdcblat2:49 xccblat2:52 xzcblat2:52
    xscblat3:19 xdcblat3:19 xccblat3:28 xzcblat3:28)
  set(netlib_backends reference openblas far) # far: a backend of shim.cmake whose operands are copied
  if(TARGET tenon_backend_opencl)
    list(APPEND netlib_backends opencl)
  endif()
  foreach(backend IN LISTS netlib_backends)
    set(name netlib.${backend})
    set(labels end_to_end)
    set(configurations)
    if(backend STREQUAL opencl) # compiles its kernels
      set(name long.${name})
      set(labels "end_to_end;opencl;long")
      set(configurations CONFIGURATIONS long)
    endif()
    foreach(line IN LISTS netlib_passes)
      string(REPLACE ":" ";" line ${line})
      list(GET line 0 tester)
      list(GET line 1 passes)
      add_test(NAME ${name}.${tester} ${configurations} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/netlib.py
        $<TARGET_FILE_DIR:tenon_blas_as_libblas> ${backend} ${tester} ${passes} ${CMAKE_CURRENT_BINARY_DIR}/plugins/far)
      set_tests_properties(${name}.${tester} PROPERTIES LABELS "${labels}" TIMEOUT 120 SKIP_RETURN_CODE 77)
      if(backend STREQUAL opencl)
        set_tests_properties(${name}.${tester} PROPERTIES
          SKIP_REGULAR_EXPRESSION "OpenCL (loader found no driver|ICD loader cannot be opened|platforms .* have no device)")
      endif()
    endforeach()
  endforeach()
endif()
