# SPDX-License-Identifier: Apache-2.0
# tenon_header_tests(<label> HEADER <file.c> LAYOUT <layout.py> [INCLUDES <option>...] [C_OPTIONS <option>...]): tests of a C header, with that label:
#   <label>.header.{c11,cxx20}.{gcc,clang}   <file.c>, which includes it, is strict C11 and C++20 by both compilers
#   <label>.layout[.<target>]                its layout equals the published one, here and on three targets
# tenon_skippable_test(<label> <name> COMMAND ...): a test <label>.<name> that may skip itself. A compiler that is not installed is a skip with a reason.
function(tenon_skippable_test label name)
  add_test(NAME ${label}.${name} ${ARGN})
  set_tests_properties(${label}.${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77)
endfunction()

function(tenon_header_tests label)
  cmake_parse_arguments(PARSE_ARGV 1 of "" "HEADER;LAYOUT" "INCLUDES;C_OPTIONS")
  set(strict -fsyntax-only -pedantic-errors -Werror -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wundef ${of_INCLUDES})
  foreach(compiler gcc clang)
    string(REPLACE gcc g++ cxx_compiler ${compiler})
    string(REPLACE clang clang++ cxx_compiler ${cxx_compiler})
    find_program(TENON_${compiler} ${compiler})
    find_program(TENON_${compiler}_cxx ${cxx_compiler})
    if(TENON_${compiler} AND TENON_${compiler}_cxx)
      tenon_skippable_test(${label} header.c11.${compiler} COMMAND ${TENON_${compiler}} -std=c11 -Wstrict-prototypes -Wc++-compat ${of_C_OPTIONS} ${strict}
        ${of_HEADER})
      tenon_skippable_test(${label} header.cxx20.${compiler} COMMAND ${TENON_${compiler}_cxx} -std=c++20 ${strict} -x c++ ${of_HEADER})
    else()
      tenon_skippable_test(${label} header.${compiler} COMMAND sh -c "echo 'skipped: no ${compiler} here: tools/setup installs it' && exit 77")
    endif()
  endforeach()
  set(layout ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE} ${of_LAYOUT})
  tenon_skippable_test(${label} layout COMMAND ${layout} check --cc ${CMAKE_C_COMPILER})
  foreach(target linux-x86_64:gcc linux-aarch64:aarch64-linux-gnu-gcc windows-x86_64:x86_64-w64-mingw32-gcc)
    string(REPLACE ":" ";" target ${target})
    list(GET target 0 platform)
    list(GET target 1 compiler)
    tenon_skippable_test(${label} layout.${platform} COMMAND ${layout} compile --cc "${compiler} -std=c11")
  endforeach()
endfunction()
