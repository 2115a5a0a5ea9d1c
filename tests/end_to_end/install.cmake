# SPDX-License-Identifier: Apache-2.0
# The installed tree, moved elsewhere, with the examples built against it; the archives and Debian packages that tools/package makes; the reference pages.
add_test(NAME end_to_end.install COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/install.sh ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR}
  ${PROJECT_SOURCE_DIR} ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER})
add_test(NAME end_to_end.package COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/package.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.deb COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/deb.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.bundle CONFIGURATIONS long COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/bundle.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.docs COMMAND ${PROJECT_SOURCE_DIR}/tools/docs ${CMAKE_CURRENT_BINARY_DIR}/reference)
set_tests_properties(end_to_end.install end_to_end.package end_to_end.deb end_to_end.bundle end_to_end.docs PROPERTIES
  LABELS "end_to_end;slow" TIMEOUT 300 SKIP_RETURN_CODE 77)
set_tests_properties(end_to_end.install PROPERTIES COST 100) # the longest: it starts first
