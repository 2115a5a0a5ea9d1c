# SPDX-License-Identifier: Apache-2.0
# tenon_header_tests(<label> HEADER <file.c> LAYOUT <layout.py> [INCLUDES <option>...] [C_OPTIONS <option>...]): tests of a C header, with that label:
#   <label>.header.{c11,cxx20}.{gcc,clang}   <file.c>, which includes it, is strict C11 and C++20 by both compilers
#   <label>.header.c11.msvc                  ... and compiles as Visual Studio's C11 without a warning of /W4
#   <label>.layout[.<target>]                its layout equals the published one, here, by cross compilers, and on Clang's other targets
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
  foreach(target x86_64-pc-windows-msvc aarch64-pc-windows-msvc aarch64-w64-windows-gnu arm64-apple-macos12 riscv64-linux-gnu)
    tenon_skippable_test(${label} layout.${target} COMMAND ${layout} compile --cc "clang --target=${target} -std=c11 -ffreestanding")
  endforeach()
  # Visual Studio's dialect and warnings, by Clang. The headers of the C library are MinGW's.
  find_program(TENON_clang_cl NAMES clang-cl clang-cl-14)
  set(c_library /usr/x86_64-w64-mingw32/include)
  list(TRANSFORM of_INCLUDES REPLACE "^-isystem$" "-imsvc")
  if(TENON_clang_cl AND EXISTS ${c_library}/stdio.h)
    tenon_skippable_test(${label} header.c11.msvc COMMAND ${TENON_clang_cl} --target=x86_64-pc-windows-msvc /c /std:c11 /W4 /WX
      -imsvc ${c_library} ${of_INCLUDES} /Fo${CMAKE_CURRENT_BINARY_DIR}/header.obj -- ${of_HEADER})
  else()
    tenon_skippable_test(${label} header.c11.msvc COMMAND sh -c "echo 'skipped: no clang-cl or MinGW here: tools/setup --windows installs them' && exit 77")
  endif()
endfunction()
