# SPDX-License-Identifier: Apache-2.0
# The installed tree, moved elsewhere, with the examples built against it; the archives and Debian packages that tools/package makes; the site.
add_test(NAME end_to_end.install COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/install.sh ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR}
  ${PROJECT_SOURCE_DIR} ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER})
add_test(NAME end_to_end.package COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/package.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.deb COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/deb.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.bundle CONFIGURATIONS long COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/bundle.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.docs COMMAND ${PROJECT_SOURCE_DIR}/tools/docs --check ${CMAKE_CURRENT_BINARY_DIR}/reference)
add_test(NAME end_to_end.site CONFIGURATIONS long COMMAND ${PROJECT_SOURCE_DIR}/tools/docs --build ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/site)
add_test(NAME end_to_end.site_tools COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 python3 ${CMAKE_CURRENT_LIST_DIR}/site_test.py ${PROJECT_SOURCE_DIR})
add_test(NAME end_to_end.troubleshooting COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/troubleshooting.py ${PROJECT_SOURCE_DIR})
set_tests_properties(end_to_end.install end_to_end.package end_to_end.deb end_to_end.bundle end_to_end.docs end_to_end.site end_to_end.site_tools end_to_end.troubleshooting PROPERTIES
  LABELS "end_to_end;slow" TIMEOUT 300 SKIP_RETURN_CODE 77)
set_tests_properties(end_to_end.site PROPERTIES TIMEOUT 1200)
set_tests_properties(end_to_end.install PROPERTIES COST 100) # the longest: it starts first
