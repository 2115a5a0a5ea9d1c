# SPDX-License-Identifier: Apache-2.0
# The path of a backend author: the commands that new-backend prints, the guide plugins/README.md block by block, the reference pages. The
# build tree has the layout of the installed one, in which install.sh runs new_backend.sh in every run.
add_test(NAME end_to_end.generate_docs COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/generate_docs.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(end_to_end.generate_docs PROPERTIES LABELS end_to_end)
if(NOT TENON_SANITIZE) # an SDK built with a sanitizer links only into programs built with it
  add_test(NAME end_to_end.new_backend CONFIGURATIONS long COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/new_backend.sh ${PROJECT_BINARY_DIR}
    ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER})
  add_test(NAME end_to_end.guide COMMAND ${CMAKE_COMMAND} -E env CC=${CMAKE_C_COMPILER} CXX=${CMAKE_CXX_COMPILER}
    python3 ${CMAKE_CURRENT_LIST_DIR}/guide.py ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  set_tests_properties(end_to_end.new_backend end_to_end.guide PROPERTIES LABELS "end_to_end;slow" TIMEOUT 900 COST 50)
endif()
