# SPDX-License-Identifier: Apache-2.0
# The installed tree. It is relocatable: run paths start from $ORIGIN, the package files from their own folder.
#
#   bin/tenon   lib/libtenon.so   lib/libtenon_sdk.a   lib/tenon/{backends/,tenon-bench,tenon-conformance,tenon-probe}   lib/cmake/tenon/   lib/pkgconfig/tenon.pc
#   lib/libtenon_blas.so   lib/tenon/blas/libblas.so.3
#   On Windows: bin/{tenon.exe,tenon.dll,tenon_blas.dll} with the compiler's DLLs, and lib/*.dll.a, which programs are linked with
#   include/tenon/ (the C++ API, the plugin ABI, the SDK)   share/tenon/{models,examples,template,new_backend,peers}/   share/doc/tenon/
#
# Each component is a Debian package (deb.cmake): library, dev, backends, backend_cuda, tools and blas.
get_property(backends GLOBAL PROPERTY TENON_BACKENDS)
get_property(helper_programs GLOBAL PROPERTY TENON_HELPER_PROGRAMS)
install(TARGETS tenon_command RUNTIME DESTINATION bin COMPONENT tools)
install(TARGETS ${helper_programs} RUNTIME DESTINATION lib/tenon COMPONENT tools)
install(TARGETS tenon tenon_sdk
  RUNTIME DESTINATION bin COMPONENT library
  LIBRARY DESTINATION lib COMPONENT library NAMELINK_COMPONENT dev
  ARCHIVE DESTINATION lib COMPONENT dev)
install(TARGETS tenon_blas
  RUNTIME DESTINATION bin COMPONENT blas
  LIBRARY DESTINATION lib COMPONENT blas
  ARCHIVE DESTINATION lib COMPONENT blas)
if(TARGET tenon_blas_as_libblas)
  install(TARGETS tenon_blas_as_libblas LIBRARY DESTINATION lib/tenon/blas COMPONENT blas)
endif()
if(TARGET tenon_transport_mpi)
  install(TARGETS tenon_transport_mpi LIBRARY DESTINATION lib/tenon/transports COMPONENT transport_mpi)
endif()
install(FILES ${TENON_COMPILER_DLLS} DESTINATION bin COMPONENT library)
foreach(backend IN LISTS backends)
  set(component backends)
  if(backend STREQUAL cuda) # of use only with a GPU, and by far the largest
    set(component backend_cuda)
  endif()
  install(TARGETS tenon_backend_${backend} LIBRARY DESTINATION lib/tenon/backends COMPONENT ${component})
  # The exclusions for the conformance kit are installed next to the plugin file that they apply to.
  install(FILES ${PROJECT_SOURCE_DIR}/backends/${backend}/conformance.yaml OPTIONAL COMPONENT ${component}
    DESTINATION lib/tenon/backends RENAME ${CMAKE_SHARED_MODULE_PREFIX}tenon_backend_${backend}.conformance.yaml)
endforeach()

# Test programs that need a GPU: not installed by default, but part of the bundle that tools/package makes for GPU machines.
get_property(gpu_tests GLOBAL PROPERTY TENON_GPU_TESTS)
foreach(test IN LISTS gpu_tests)
  set_target_properties(${test} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS ${test} RUNTIME DESTINATION bin COMPONENT gpu_tests EXCLUDE_FROM_ALL)
endforeach()

foreach(folder runtime plugins/abi plugins/sdk)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/tenon DESTINATION include COMPONENT dev
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
endforeach()

include(CMakePackageConfigHelpers)
set(package ${PROJECT_BINARY_DIR}/package)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tenon.pc.in ${package}/tenon.pc @ONLY)
write_basic_package_version_file(${package}/tenonConfigVersion.cmake VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/tenonConfig.cmake ${package}/tenonConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/backend.cmake ${CMAKE_CURRENT_LIST_DIR}/backend.map ${CMAKE_CURRENT_LIST_DIR}/oplist.cmake
  DESTINATION lib/cmake/tenon COMPONENT dev)
install(FILES ${package}/tenon.pc DESTINATION lib/pkgconfig COMPONENT dev)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/models ${PROJECT_SOURCE_DIR}/plugins/new_backend DESTINATION share/tenon COMPONENT tools)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/bench/peers DESTINATION share/tenon COMPONENT tools PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/examples ${PROJECT_SOURCE_DIR}/plugins/template DESTINATION share/tenon COMPONENT dev)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/tenon COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/SECURITY.md
  DESTINATION share/doc/tenon COMPONENT tools)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION share/doc/tenon COMPONENT tools PATTERN adr EXCLUDE PATTERN make EXCLUDE)
# Pages of plugins/, under names that say what they are about.
foreach(page abi/README.md:abi.md abi/CHANGELOG.md:abi-changelog.md sdk/README.md:sdk.md README.md:plugins.md ops.md:ops.md blas.md:blas.md)
  string(REPLACE ":" ";" page ${page})
  list(GET page 0 file)
  list(GET page 1 name)
  install(FILES ${PROJECT_SOURCE_DIR}/plugins/${file} DESTINATION share/doc/tenon RENAME ${name} COMPONENT dev)
endforeach()

# The terms of libraries whose code is part of ours, linked statically or in headers, as their Debian packages state them.
set(zlib)
if(MINGW)
  set(zlib ${ZLIB_LIBRARY})
endif()
file(GLOB compiled_in ${zlib} ${TENON_COMPILER_DLLS} /usr/include/hwy/highway.h /usr/include/boost/version.hpp /usr/include/nlohmann/json.hpp /usr/include/CLI/CLI.hpp
  /usr/include/dlpack/dlpack.h /usr/include/protozero/pbf_reader.hpp /usr/include/doctest/doctest.h ${OpenBLASSerial_LIBRARY})
find_program(TENON_DPKG_QUERY dpkg-query)
mark_as_advanced(TENON_DPKG_QUERY)
foreach(file IN LISTS compiled_in)
  if(NOT TENON_DPKG_QUERY)
    break()
  endif()
  file(REAL_PATH ${file} file)
  execute_process(COMMAND ${TENON_DPKG_QUERY} --search ${file} OUTPUT_VARIABLE owner ERROR_QUIET)
  string(REGEX REPLACE ":.*" "" owner "${owner}")
  if(owner AND EXISTS /usr/share/doc/${owner}/copyright)
    install(FILES /usr/share/doc/${owner}/copyright DESTINATION share/doc/tenon/third_party RENAME ${owner} COMPONENT library)
  endif()
endforeach()
# Those of tools/windows-dependencies lie where it put the libraries.
if(TENON_WINDOWS_PREFIX)
  file(GLOB terms RELATIVE ${TENON_WINDOWS_PREFIX}/share/doc CONFIGURE_DEPENDS ${TENON_WINDOWS_PREFIX}/share/doc/*/copyright)
  foreach(file IN LISTS terms)
    get_filename_component(package ${file} DIRECTORY)
    install(FILES ${TENON_WINDOWS_PREFIX}/share/doc/${file} DESTINATION share/doc/tenon/third_party RENAME ${package} COMPONENT library)
  endforeach()
endif()
