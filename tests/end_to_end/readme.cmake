# The README's program and commands.
add_executable(quickstart quickstart.cpp)
target_link_libraries(quickstart PRIVATE tenon::runtime tenon::flags)
add_dependencies(quickstart tenon_backend_reference tenon_backend_openblas tenon_command)
add_test(NAME end_to_end.readme COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/readme.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(end_to_end.readme PROPERTIES LABELS end_to_end)
