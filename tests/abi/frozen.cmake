# SPDX-License-Identifier: Apache-2.0
# tenon_frozen(<version> <options...>): core, driver, template and reference with the header of a frozen ABI (frozen.py), built from the
# current sources into ${CMAKE_CURRENT_BINARY_DIR}/<version>. Not part of `all` unless a test requires it.
function(tenon_frozen version)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${version})
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/frozen.py)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE} ${script} ${version} ${folder}
    RESULT_VARIABLE failed ERROR_VARIABLE error)
  if(failed)
    message(FATAL_ERROR "${error}")
  endif()
  set(runtime ${PROJECT_SOURCE_DIR}/runtime)
  set(sdk ${PROJECT_SOURCE_DIR}/plugins/sdk)
  # The files that are edited or copied: a change to one of them runs the configure step again.
  file(GLOB inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/abi/tenon/* ${PROJECT_SOURCE_DIR}/backends/reference/*.h
    ${PROJECT_SOURCE_DIR}/backends/reference/*.cpp ${PROJECT_SOURCE_DIR}/backends/reference/ops/*.cpp
    ${PROJECT_SOURCE_DIR}/backends/reference/blas/*)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script} ${inputs} ${sdk}/boundary.cpp
    ${sdk}/boundary_plans.cpp ${sdk}/query.cpp ${PROJECT_SOURCE_DIR}/plugins/template/template.c ${runtime}/ops/activation.cpp)
  string(REPLACE . _ tag ${version})

  # The core without models, data and training loop, which the pairs do not need.
  file(GLOB core CONFIGURE_DEPENDS ${runtime}/core/*.cpp ${runtime}/graph/*.cpp ${runtime}/exec/*.cpp ${runtime}/blas/*.cpp
    ${runtime}/config/config*.cpp ${runtime}/yaml/*.cpp ${runtime}/ops/*.cpp ${PROJECT_SOURCE_DIR}/plugins/loader/*.cpp)
  list(APPEND core ${runtime}/config/device_name.cpp ${runtime}/data/dataset.cpp ${runtime}/io/atomic_file.cpp ${runtime}/io/checksum.cpp
    ${runtime}/io/gzip.cpp ${runtime}/io/limits.cpp ${runtime}/io/output_target.cpp ${runtime}/io/input_file.cpp ${runtime}/io/utf8.cpp ${PROJECT_BINARY_DIR}/runtime/op_table.cpp)
  file(GLOB kit CONFIGURE_DEPENDS ${sdk}/*.cpp ${sdk}/passes/*.cpp ${sdk}/${TENON_SYSTEM}/*.cpp)
  foreach(list core kit)
    set(taken)
    foreach(file IN LISTS ${list})
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${file})
      if(EXISTS ${folder}/source/${path})
        set(file ${folder}/source/${path})
      endif()
      list(APPEND taken ${file})
    endforeach()
    set(${list} ${taken})
  endforeach()

  add_library(abi_sdk_${tag} STATIC EXCLUDE_FROM_ALL ${kit})
  target_include_directories(abi_sdk_${tag} PUBLIC ${folder}/include ${sdk})
  add_library(abi_core_${tag} SHARED EXCLUDE_FROM_ALL ${core})
  target_include_directories(abi_core_${tag} PUBLIC ${runtime} ${PROJECT_SOURCE_DIR}/plugins PRIVATE ${DLPACK_INCLUDE_DIRECTORY})
  target_compile_definitions(abi_core_${tag} PRIVATE BOOST_DLL_USE_STD_FS)
  target_link_libraries(abi_core_${tag} PUBLIC abi_sdk_${tag} fmt::fmt
    PRIVATE tenon::platform Boost::headers yaml-cpp nlohmann_json::nlohmann_json ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(abi_core_${tag} PROPERTIES OUTPUT_NAME tenon CXX_VISIBILITY_PRESET default)
  add_executable(abi_driver_${tag} EXCLUDE_FROM_ALL ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/pairs_driver.cpp)
  target_link_libraries(abi_driver_${tag} PRIVATE abi_core_${tag})
  set_target_properties(abi_driver_${tag} PROPERTIES OUTPUT_NAME abi_driver BUILD_RPATH "$ORIGIN" BUILD_RPATH_USE_ORIGIN ON)

  add_library(abi_template_${tag} MODULE EXCLUDE_FROM_ALL ${folder}/source/plugins/template/template.c)
  target_include_directories(abi_template_${tag} PRIVATE ${folder}/include)
  set_target_properties(abi_template_${tag} PROPERTIES OUTPUT_NAME tenon_backend_template)
  block()
    set(TENON_OPS_DEF ${folder}/include/tenon/ops.def)
    include(oplist)
    tenon_add_backend(reference TARGET abi_reference_${tag} OUTPUT ${folder}
      FOLDER ${folder}/source/backends/reference SOURCES ${folder}/source/backends/reference/backend.cpp SDK abi_sdk_${tag})
  endblock()
  set_target_properties(abi_reference_${tag} PROPERTIES EXCLUDE_FROM_ALL ON)
  foreach(part sdk core driver template reference)
    target_compile_definitions(abi_${part}_${tag} PRIVATE TENON_VERSION="${PROJECT_VERSION}")
    target_compile_options(abi_${part}_${tag} PRIVATE -ffp-contract=off -w ${ARGN})
    set_target_properties(abi_${part}_${tag} PROPERTIES
      EXPORT_COMPILE_COMMANDS OFF # clang-tidy would look at each file of the core once for every build of it
      LIBRARY_OUTPUT_DIRECTORY ${folder} RUNTIME_OUTPUT_DIRECTORY ${folder} ARCHIVE_OUTPUT_DIRECTORY ${folder})
  endforeach()
  tenon_precompile(abi_core_${tag} fmt/format.h)
  tenon_precompile(abi_sdk_${tag})
  add_custom_target(abi_frozen_${tag} DEPENDS abi_driver_${tag} abi_template_${tag} abi_reference_${tag})
endfunction()
