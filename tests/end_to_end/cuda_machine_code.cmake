# SPDX-License-Identifier: Apache-2.0
# The resources and the memory instructions of the cuda backend's kernels. cuobjdump is part of some toolkits, and of Triton's wheel.
if(TARGET tenon_backend_cuda)
  find_package(CUDAToolkit 12.8 QUIET)
  find_program(TENON_CUOBJDUMP cuobjdump HINTS ${CUDAToolkit_BIN_DIR} DOC "The tool that reads the machine code of the cuda backend in a test")
  mark_as_advanced(TENON_CUOBJDUMP)
  # Code that is compiled without optimisation, or when the plugin is loaded, is not what the limits are for.
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  set(flags "${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${build_type}}")
  if(NOT TENON_CUOBJDUMP)
    message(STATUS "cuda: the test of its machine code is left out, because there is no cuobjdump here; TENON_CUOBJDUMP names it")
  elseif(flags MATCHES "(^| )(-G|--device-debug)( |$)|-X(cicc|ptxas)[ =][^ ]*-O0")
    message(STATUS "cuda: the test of its machine code is left out, because its kernels are compiled without optimisation")
  elseif(NOT TENON_CUDA_ARCHITECTURES MATCHES "(^|;)(90(-real)?|all|all-major)(;|$)")
    message(STATUS "cuda: the test of its machine code is left out, because TENON_CUDA_ARCHITECTURES asks for none for compute capability 9.0")
  else()
    add_test(NAME cuda.machine_code
      COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/cuda_machine_code/machine_code.py ${TENON_CUOBJDUMP} $<TARGET_FILE:tenon_backend_cuda>)
    set_tests_properties(cuda.machine_code PROPERTIES LABELS "end_to_end")
  endif()
endif()
