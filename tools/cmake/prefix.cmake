# SPDX-License-Identifier: Apache-2.0
# Gives the build tree the layout of the installed one: headers, package files and what is in share/tenon, as links where
# possible. find_package(tenon) with CMAKE_PREFIX_PATH=<build tree> is then enough to build a backend or a program against it.
if(CMAKE_HOST_WIN32) # which may not allow links
  return()
endif()
foreach(folder runtime plugins/abi plugins/sdk)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/${folder}
    ${PROJECT_SOURCE_DIR}/${folder}/tenon/*.h ${PROJECT_SOURCE_DIR}/${folder}/tenon/*.def ${PROJECT_SOURCE_DIR}/${folder}/tenon/sdk/*.h)
  foreach(header IN LISTS headers)
    get_filename_component(directory ${PROJECT_BINARY_DIR}/include/${header} DIRECTORY)
    file(MAKE_DIRECTORY ${directory})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder}/${header} ${PROJECT_BINARY_DIR}/include/${header} SYMBOLIC)
  endforeach()
endforeach()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/tenon)
foreach(folder models plugins/template plugins/new_backend tools/bench/peers)
  get_filename_component(name ${folder} NAME)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/share/tenon/${name} SYMBOLIC)
endforeach()
foreach(file tenonConfig.cmake backend.cmake backend.map oplist.cmake) # copies: they find the tree relative to themselves
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${file} ${PROJECT_BINARY_DIR}/lib/cmake/tenon/${file} COPYONLY)
endforeach()
configure_file(${PROJECT_BINARY_DIR}/package/tenonConfigVersion.cmake ${PROJECT_BINARY_DIR}/lib/cmake/tenon/tenonConfigVersion.cmake COPYONLY)
set_target_properties(tenon_sdk tenon PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
