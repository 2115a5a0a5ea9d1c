# SPDX-License-Identifier: Apache-2.0
# Training by several processes, connected by the transport mpi.
find_program(TENON_MPIRUN mpirun)
add_executable(end_to_end_ranks ranks.cpp)
target_link_libraries(end_to_end_ranks PRIVATE tenon::runtime tenon::flags)
target_compile_options(end_to_end_ranks PRIVATE ${TENON_NAMED_FIELDS})
add_dependencies(end_to_end_ranks tenon_backend_reference tenon_backend_openblas)
add_test(NAME end_to_end.processes COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/processes.sh $<TARGET_FILE:tenon_command> ${PROJECT_SOURCE_DIR} "${TENON_MPIRUN}" $<TARGET_FILE:end_to_end_ranks>)
set_tests_properties(end_to_end.processes PROPERTIES LABELS end_to_end COST 60 SKIP_RETURN_CODE 77)
add_test(NAME long.end_to_end.processes CONFIGURATIONS long
  COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/processes.sh $<TARGET_FILE:tenon_command> ${PROJECT_SOURCE_DIR} "${TENON_MPIRUN}" $<TARGET_FILE:end_to_end_ranks> 100)
set_tests_properties(long.end_to_end.processes PROPERTIES LABELS end_to_end SKIP_RETURN_CODE 77)
add_test(NAME end_to_end.hosts COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/hosts.sh $<TARGET_FILE:tenon_command> ${PROJECT_SOURCE_DIR} "${TENON_MPIRUN}")
set_tests_properties(end_to_end.hosts PROPERTIES LABELS end_to_end COST 20 SKIP_RETURN_CODE 77)
