# SPDX-License-Identifier: Apache-2.0
# The programs and commands of README and docs/, and the keys of docs/yaml.md.
foreach(program quickstart tour)
  add_executable(${program} ${program}.cpp)
  target_link_libraries(${program} PRIVATE tenon::runtime tenon::flags)
  add_dependencies(${program} tenon_backend_reference tenon_backend_openblas tenon_command)
endforeach()
add_test(NAME end_to_end.readme COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/readme.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.yaml_reference
  COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/yaml_reference.py $<TARGET_FILE:tenon_command> ${PROJECT_SOURCE_DIR})
set_tests_properties(end_to_end.readme end_to_end.yaml_reference PROPERTIES LABELS end_to_end)
