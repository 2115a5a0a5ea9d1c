# SPDX-License-Identifier: Apache-2.0
# Reads ops.def once, that of this tree or (TENON_OPS_DEF) an installed one. TENON_OP_LINES is a list of
# Name|version|stem|family|type_operand, TENON_OP_FAMILIES lists the families.
if(NOT TENON_OPS_DEF)
  set(TENON_OPS_DEF ${PROJECT_SOURCE_DIR}/plugins/abi/tenon/ops.def)
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${TENON_OPS_DEF})
file(READ ${TENON_OPS_DEF} _text)
string(REGEX MATCHALL
  "TENON_OP\\([0-9]+, *[A-Za-z0-9]+, *[0-9]+, *[a-z0-9_]+, *[a-z0-9_]+, *-?[0-9]+," _lines "${_text}")
set(TENON_OP_LINES)
set(TENON_OP_FAMILIES)
foreach(_line IN LISTS _lines)
  string(REGEX REPLACE
    "TENON_OP\\([0-9]+, *([A-Za-z0-9]+), *([0-9]+), *([a-z0-9_]+), *([a-z0-9_]+), *(-?[0-9]+),"
    "\\1|\\2|\\3|\\4|\\5" _entry "${_line}")
  list(APPEND TENON_OP_LINES "${_entry}")
  string(REPLACE "|" ";" _fields "${_entry}")
  list(GET _fields 3 _family)
  list(APPEND TENON_OP_FAMILIES ${_family})
endforeach()
list(REMOVE_DUPLICATES TENON_OP_FAMILIES)

# tenon_op_families(<directory> <out list of files> [REQUIRE_ALL]): the families in a folder. A file whose stem is not a family, or with
# REQUIRE_ALL a family without a file, fails the configure step.
function(tenon_op_families directory out)
  cmake_parse_arguments(ARG "REQUIRE_ALL" "" "" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS ${directory}/*.cpp ${directory}/*.cu)
  set(present)
  foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    if(NOT stem IN_LIST TENON_OP_FAMILIES)
      message(FATAL_ERROR "${file}: no op of plugins/abi/tenon/ops.def names the family '${stem}'. Add its line there, or rename the file.")
    endif()
    list(APPEND present ${stem})
  endforeach()
  if(ARG_REQUIRE_ALL)
    foreach(family IN LISTS TENON_OP_FAMILIES)
      if(NOT family IN_LIST present)
        message(FATAL_ERROR "${directory}/${family}.cpp is missing: plugins/abi/tenon/ops.def lists ops in the family '${family}'.")
      endif()
    endforeach()
  endif()
  set(${out} ${files} PARENT_SCOPE)
endfunction()
