# SPDX-License-Identifier: Apache-2.0
# What training steps launch on the emulated GPU.
if(TARGET tenon_backend_cuda_emulated AND NOT TENON_SANITIZE)
  set(command ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/cuda_emulation/libraries
    python3 ${PROJECT_SOURCE_DIR}/tests/cuda_emulation/launches.py $<TARGET_FILE:tenon_command> $<TARGET_FILE:tenon_backend_cuda_emulated>
    ${PROJECT_SOURCE_DIR})
  add_test(NAME cuda_emulation.launches COMMAND ${command})
  add_test(NAME long.cuda_emulation.launches CONFIGURATIONS long COMMAND ${command} --long)
  set_tests_properties(cuda_emulation.launches PROPERTIES LABELS "end_to_end;cuda_emulation")
  set_tests_properties(long.cuda_emulation.launches PROPERTIES LABELS "end_to_end;cuda_emulation;long")
endif()
