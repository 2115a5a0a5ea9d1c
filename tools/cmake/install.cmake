# SPDX-License-Identifier: Apache-2.0
# The installed tree. It is relocatable: run paths start from $ORIGIN, the package files from their own folder.
#
#   bin/tenon   lib/libtenon.so   lib/libtenon_sdk.a   lib/tenon/{backends/,tenon-bench,tenon-conformance,tenon-probe}   lib/cmake/tenon/   lib/pkgconfig/tenon.pc
#   lib/libtenon_blas.so   lib/tenon/blas/libblas.so.3
#   include/tenon/ (the C++ API, the plugin ABI, the SDK)   share/tenon/{models,examples,template,new_backend,peers}/   share/doc/tenon/
get_property(backends GLOBAL PROPERTY TENON_BACKENDS)
get_property(helper_programs GLOBAL PROPERTY TENON_HELPER_PROGRAMS)
install(TARGETS tenon_command RUNTIME DESTINATION bin)
install(TARGETS ${helper_programs} RUNTIME DESTINATION lib/tenon)
install(TARGETS tenon tenon_sdk RUNTIME DESTINATION bin LIBRARY DESTINATION lib ARCHIVE DESTINATION lib)
if(TARGET tenon_blas)
  install(TARGETS tenon_blas LIBRARY DESTINATION lib)
  install(TARGETS tenon_blas_as_libblas LIBRARY DESTINATION lib/tenon/blas)
endif()
foreach(backend IN LISTS backends)
  install(TARGETS tenon_backend_${backend} LIBRARY DESTINATION lib/tenon/backends)
  # The exclusions for the conformance kit are installed next to the plugin file that they apply to.
  install(FILES ${PROJECT_SOURCE_DIR}/backends/${backend}/conformance.yaml OPTIONAL
    DESTINATION lib/tenon/backends RENAME libtenon_backend_${backend}.conformance.yaml)
endforeach()

# Test programs that need a GPU: not installed by default, but part of the bundle that tools/package makes for GPU machines.
get_property(gpu_tests GLOBAL PROPERTY TENON_GPU_TESTS)
foreach(test IN LISTS gpu_tests)
  set_target_properties(${test} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS ${test} RUNTIME DESTINATION bin COMPONENT gpu_tests EXCLUDE_FROM_ALL)
endforeach()

foreach(folder runtime plugins/abi plugins/sdk)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/tenon DESTINATION include
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
endforeach()

include(CMakePackageConfigHelpers)
set(package ${PROJECT_BINARY_DIR}/package)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tenon.pc.in ${package}/tenon.pc @ONLY)
write_basic_package_version_file(${package}/tenonConfigVersion.cmake VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/tenonConfig.cmake ${package}/tenonConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/backend.cmake ${CMAKE_CURRENT_LIST_DIR}/backend.map ${CMAKE_CURRENT_LIST_DIR}/oplist.cmake
  DESTINATION lib/cmake/tenon)
install(FILES ${package}/tenon.pc DESTINATION lib/pkgconfig)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/models ${PROJECT_SOURCE_DIR}/tools/examples ${PROJECT_SOURCE_DIR}/plugins/template
  ${PROJECT_SOURCE_DIR}/plugins/new_backend
  DESTINATION share/tenon)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/bench/peers DESTINATION share/tenon PATTERN __pycache__ EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/SECURITY.md
  DESTINATION share/doc/tenon)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/tenon)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION share/doc/tenon PATTERN adr EXCLUDE PATTERN make EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/plugins/abi/README.md DESTINATION share/doc/tenon RENAME abi.md)
install(FILES ${PROJECT_SOURCE_DIR}/plugins/abi/CHANGELOG.md DESTINATION share/doc/tenon RENAME abi-changelog.md)
install(FILES ${PROJECT_SOURCE_DIR}/plugins/sdk/README.md DESTINATION share/doc/tenon RENAME sdk.md)
install(FILES ${PROJECT_SOURCE_DIR}/plugins/README.md DESTINATION share/doc/tenon RENAME plugins.md)
install(FILES ${PROJECT_SOURCE_DIR}/plugins/ops.md ${PROJECT_SOURCE_DIR}/plugins/blas.md DESTINATION share/doc/tenon)
