# SPDX-License-Identifier: Apache-2.0
# find_package(tenon): the targets of an installed tree. It needs no other package; the tree may be moved.
#
#   tenon::runtime            the C++ API, #include <tenon/tenon.h>
#   tenon::c                  the C API, #include <tenon/runtime.h>: for projects in C alone, too
#   tenon::abi                the plugin ABI, #include <tenon/backend.h>: enough for a backend in plain C
#   tenon::sdk                the kit for backends in C++, #include <tenon/sdk/backend.h>
#   tenon_add_backend(...)    a backend from kernels in files; see share/doc/tenon/sdk.md
#   tenon_BACKEND_DIRECTORY   the folder of the installed backends
get_filename_component(tenon_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(tenon_BACKEND_DIRECTORY "${tenon_PREFIX}/lib/tenon/backends")

# On Windows the library, its SDK and so C++ are for MinGW; a backend in plain C is built by any compiler.
set(_tenon_library lib/libtenon.so)
set(_tenon_location IMPORTED_LOCATION "${tenon_PREFIX}/lib/libtenon.so")
if(WIN32)
  set(_tenon_library lib/libtenon.dll.a)
  set(_tenon_location IMPORTED_LOCATION "${tenon_PREFIX}/bin/tenon.dll" IMPORTED_IMPLIB "${tenon_PREFIX}/lib/libtenon.dll.a")
endif()

foreach(_tenon_file include/tenon/backend.h ${_tenon_library} lib/libtenon_sdk.a)
  if(NOT EXISTS "${tenon_PREFIX}/${_tenon_file}")
    set(tenon_FOUND FALSE)
    set(tenon_NOT_FOUND_MESSAGE "${tenon_PREFIX}/${_tenon_file} is missing: the installed tree is not complete")
    return()
  endif()
endforeach()
foreach(_tenon_component IN LISTS tenon_FIND_COMPONENTS)
  set(tenon_${_tenon_component}_FOUND FALSE)
  if(_tenon_component MATCHES "^(runtime|c|abi|sdk)$")
    set(tenon_${_tenon_component}_FOUND TRUE)
  elseif(tenon_FIND_REQUIRED_${_tenon_component})
    set(tenon_FOUND FALSE)
    set(tenon_NOT_FOUND_MESSAGE "there is no component '${_tenon_component}'; there are runtime, c, abi and sdk")
    return()
  endif()
endforeach()

if(NOT TARGET tenon::runtime)
  add_library(tenon::abi INTERFACE IMPORTED)
  set_target_properties(tenon::abi PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${tenon_PREFIX}/include")
  add_library(tenon::runtime SHARED IMPORTED)
  set_target_properties(tenon::runtime PROPERTIES
    ${_tenon_location}
    INTERFACE_LINK_LIBRARIES tenon::abi
    INTERFACE_COMPILE_FEATURES cxx_std_20)
  add_library(tenon::c SHARED IMPORTED)
  set_target_properties(tenon::c PROPERTIES
    ${_tenon_location}
    INTERFACE_LINK_LIBRARIES tenon::abi)
  add_library(tenon::sdk STATIC IMPORTED)
  set_target_properties(tenon::sdk PROPERTIES
    IMPORTED_LOCATION "${tenon_PREFIX}/lib/libtenon_sdk.a"
    INTERFACE_LINK_LIBRARIES tenon::abi
    INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()

set(TENON_OPS_DEF "${tenon_PREFIX}/include/tenon/ops.def")
include("${CMAKE_CURRENT_LIST_DIR}/oplist.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/backend.cmake")
