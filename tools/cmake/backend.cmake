# SPDX-License-Identifier: Apache-2.0
# tenon_add_backend(<name> SOURCES <files...> [LINK <libraries...>] [LINK_OPTIONS <flags...>]
#                   [FOLDER <dir>] [TARGET <target>] [OUTPUT <dir>] [SDK <target>])
#
# One plugin: a MODULE library libtenon_backend_<name>.so, on Windows tenon_backend_<name>.dll, with hidden symbols that exports only tenon_backend_query. Its kernel table is
# generated from ops.def and the families in ops/ (.cpp or .cu): a family with a file is supported. So is its BLAS table, from blas.def, if
# there is blas/ with level1.cpp, level2.cpp and level3.cpp. backend.cpp defines tenon::<name>::spec(). vendor_ops.def, if there is one, lists
# ops of its own, one a line (tenon/sdk/vendor_op.h); SOURCES has the files that define them.
# FOLDER contains ops/ and blas/; default: the current folder. TARGET and OUTPUT make a second build of an existing backend, which is not
# installed and whose file goes to OUTPUT. SDK names another build of the SDK, whose flags are then the only ones.
# Part of the installed package: find_package(tenon) provides it to backends outside this tree.
function(tenon_add_backend name)
  cmake_parse_arguments(ARG "" "FOLDER;TARGET;OUTPUT;SDK" "SOURCES;LINK;LINK_OPTIONS" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  tenon_op_families(${ARG_FOLDER}/ops family_files)
  set(families)
  foreach(file IN LISTS family_files)
    get_filename_component(stem ${file} NAME_WE)
    list(APPEND families ${stem})
  endforeach()

  set(declarations "")
  set(rows "")
  foreach(line IN LISTS TENON_OP_LINES)
    string(REPLACE "|" ";" fields "${line}")
    list(GET fields 0 op)
    list(GET fields 1 version)
    list(GET fields 2 stem)
    list(GET fields 3 family)
    list(GET fields 4 operand)
    if(family IN_LIST families)
      string(APPEND declarations "extern const sdk::Kernel kernel_${stem};\n")
      string(APPEND rows "    {TENON_OP_${op}, ${version}, ${operand}, &kernel_${stem}},\n")
    endif()
  endforeach()
  set(vendor_ops "")
  if(EXISTS ${ARG_FOLDER}/vendor_ops.def)
    set(vendor_ops "#define TENON_VENDOR_OP(id, domain, name, version, stem, operand, schema) \\
  extern const sdk::Kernel kernel_##stem; \\
  sdk::VendorInfer infer_##stem; \\
  constexpr tenon_vendor_op vendor_op_##stem{id, version, domain, #name, schema, infer_##stem};
#include <vendor_ops.def>
#undef TENON_VENDOR_OP
")
    string(APPEND rows "#define TENON_VENDOR_OP(id, domain, name, version, stem, operand, schema) {id, version, operand, &kernel_##stem, &vendor_op_##stem},
#include <vendor_ops.def>
#undef TENON_VENDOR_OP
")
  endif()
  file(GLOB blas_files CONFIGURE_DEPENDS ${ARG_FOLDER}/blas/*.cpp ${ARG_FOLDER}/blas/*.cu)
  set(blas_table "nullptr")
  set(blas "")
  if(blas_files)
    foreach(level 1 2 3)
      if(NOT ${ARG_FOLDER}/blas/level${level}.cpp IN_LIST blas_files)
        message(FATAL_ERROR "${ARG_FOLDER}/blas/level${level}.cpp is missing: a backend with blas/ has every routine of blas.def.")
      endif()
    endforeach()
    set(blas_table "tenon::${name}::blas_table")
    string(CONFIGURE [=[
#define TENON_BLAS(id, routine, level, signature, dtypes) extern const tenon_blas_##signature##_fn blas_##routine;
#include <tenon/blas.def>
#undef TENON_BLAS
namespace {
const tenon_blas_table* blas_table() {
  static const tenon_blas_table table{
      sizeof(tenon_blas_table), 0,
#define TENON_BLAS(id, routine, level, signature, dtypes) blas_##routine, TENON_DTYPES_##dtypes,
#include <tenon/blas.def>
#undef TENON_BLAS
  };
  return &table;
}
}  // namespace]=] blas @ONLY)
  endif()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${name}_query.cpp)
  if(ARG_TARGET)
    set(generated ${CMAKE_CURRENT_BINARY_DIR}/${ARG_TARGET}_query.cpp)
  endif()
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT [=[
// Written by tools/cmake/backend.cmake from ops.def and the files in ops/, from blas.def if there is blas/.
#include <tenon/sdk/backend.h>
#include <tenon/sdk/vendor_op.h>

namespace tenon::@name@ {
@declarations@@vendor_ops@
const sdk::BackendSpec& spec();
namespace {
constexpr sdk::KernelRow rows[] = {
@rows@    {TENON_OP_NONE, 0, 0, nullptr},
};
}  // namespace
@blas@
}  // namespace tenon::@name@

extern "C" TENON_EXPORT tenon_status tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  return tenon::sdk::query<tenon::@name@::spec, tenon::@name@::rows, @blas_table@>(host, out_info);
}
]=])

  if(NOT TENON_BACKEND_DIRECTORY)
    set(TENON_BACKEND_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  if(ARG_TARGET)
    set(target ${ARG_TARGET})
  else()
    set(target tenon_backend_${name})
    set(ARG_OUTPUT ${TENON_BACKEND_DIRECTORY})
    set_property(GLOBAL APPEND PROPERTY TENON_BACKENDS ${name})
  endif()
  add_library(${target} MODULE ${ARG_SOURCES} ${family_files} ${blas_files} ${generated})
  if(NOT ARG_SDK)
    set(ARG_SDK tenon::sdk $<TARGET_NAME_IF_EXISTS:tenon::flags>)
  endif()
  target_link_libraries(${target} PRIVATE ${ARG_SDK} ${ARG_LINK})
  target_include_directories(${target} PRIVATE ${ARG_FOLDER})
  target_compile_definitions(${target} PRIVATE TENON_VERSION="${PROJECT_VERSION}")
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME tenon_backend_${name}
    LIBRARY_OUTPUT_DIRECTORY ${ARG_OUTPUT}
    RUNTIME_OUTPUT_DIRECTORY ${ARG_OUTPUT}
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    INSTALL_RPATH "$ORIGIN/../.." # lib/, from lib/tenon/backends
    BUILD_WITH_INSTALL_RPATH ON)
  # The loader's names have no "lib" on Windows. MinGW's libraries are part of the plugin, so that it needs none next to it.
  if(WIN32)
    set_target_properties(${target} PROPERTIES PREFIX "")
  endif()
  if(MINGW)
    target_link_options(${target} PRIVATE -static)
  endif()
  # One export, whatever the archives contain; references are bound inside the library, so that it cannot use a host's symbols.
  if(NOT WIN32)
    target_link_options(${target} PRIVATE
      -Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/backend.map -Wl,--exclude-libs,ALL -Wl,-Bsymbolic ${ARG_LINK_OPTIONS})
  endif()
  if(NOT TENON_SANITIZE AND NOT WIN32)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
endfunction()
