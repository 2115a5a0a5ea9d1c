# SPDX-License-Identifier: Apache-2.0
# The benchmarks at very small sizes: that they run and what their reports contain, never how fast they are.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(benchmark crossing gemm blas elementwise memory fusion nets conv mnist variants pipeline scaling mnist_mlp fashion_mnist generate bandwidth compare onnx serve)
  add_test(NAME end_to_end.bench.${benchmark}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/bench_test.py $<TARGET_FILE:tenon_command> ${benchmark})
  set_tests_properties(end_to_end.bench.${benchmark} PROPERTIES LABELS end_to_end TIMEOUT 300)
endforeach()
