# SPDX-License-Identifier: Apache-2.0
# The folders, next to what is common to all, of what differs between operating systems.
if(WIN32)
  set(TENON_SYSTEM windows)
else()
  set(TENON_SYSTEM posix)
endif()

# The targets that carry flags: tenon::abi (the header), tenon::flags (numerics, warnings, sanitizers; only for this tree's code).
add_library(tenon_abi INTERFACE)
add_library(tenon::abi ALIAS tenon_abi)
target_include_directories(tenon_abi INTERFACE ${PROJECT_SOURCE_DIR}/plugins/abi)

add_library(tenon_flags INTERFACE)
add_library(tenon::flags ALIAS tenon_flags)
# nvcc compiles device code with a compiler of its own; its flags are in backends/cuda.
target_compile_options(tenon_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:
  -ffp-contract=off  # fused multiply-adds are explicit, never contracted: the same bits from every compiler
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # GCC 12 reports overlaps in `"text" + std::string` that do not exist (GCC bug 105329)
  $<$<BOOL:${TENON_WARNINGS_AS_ERRORS}>:-Werror>>)
if(MINGW) # threads as deep as Linux's
  target_link_options(tenon_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-Wl,--stack,8388608>)
endif()
if(TENON_SANITIZE STREQUAL "address")
  target_compile_options(tenon_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(tenon_flags INTERFACE -fsanitize=address,undefined)
elseif(TENON_SANITIZE STREQUAL "thread")
  target_compile_options(tenon_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(tenon_flags INTERFACE -fsanitize=thread)
elseif(TENON_SANITIZE)
  message(FATAL_ERROR "TENON_SANITIZE is '${TENON_SANITIZE}': expected address, thread or nothing")
endif()

# For tests, which name the fields that matter: designated initializers leave the others at their defaults. Clang never warns of that.
set(TENON_NAMED_FIELDS $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-missing-field-initializers>)

# Precompiles the headers that nearly every file of a target includes. A source still includes what it uses: the tidy lane compiles without
# precompiled headers (CMAKE_DISABLE_PRECOMPILE_HEADERS).
# ccache caches such objects only if the preprocessor's output names the header and its date is ignored (see tools/build).
# GCC 12 loses track of which functions in it come from system headers, and warns about those that it inlines.
set(TENON_PRECOMPILED_OPTIONS "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:-fpch-preprocess -Wno-stringop-overflow -Wno-array-bounds -Wno-mismatched-new-delete>"
  "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
function(tenon_precompile target)
  set(headers algorithm array chrono cmath cstdint cstring filesystem functional limits map memory mutex numeric optional set span string
    string_view unordered_map utility vector ${ARGN})
  list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>") # C sources have none
  target_precompile_headers(${target} PRIVATE ${headers})
  target_compile_options(${target} PRIVATE ${TENON_PRECOMPILED_OPTIONS})
endfunction()

# For code whose compile time matters more than its run time: tests, the command line, what runs once per model. Debug builds keep -O0.
add_library(tenon_quick_to_compile INTERFACE)
add_library(tenon::quick_to_compile ALIAS tenon_quick_to_compile)
target_compile_options(tenon_quick_to_compile INTERFACE $<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<CONFIG:Release>>:-O1>)

# For shipped code that computes nothing, as the command line. To optimise what a sanitizer adds takes Clang as long as all the rest.
add_library(tenon_quickest_to_compile INTERFACE)
add_library(tenon::quickest_to_compile ALIAS tenon_quickest_to_compile)
target_link_libraries(tenon_quickest_to_compile INTERFACE tenon::quick_to_compile)
if(TENON_SANITIZE)
  target_compile_options(tenon_quickest_to_compile INTERFACE -O0)
endif()

# For tests, which run once and call what is optimised.
add_library(tenon_unoptimised INTERFACE)
add_library(tenon::unoptimised ALIAS tenon_unoptimised)
target_compile_options(tenon_unoptimised INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-O0>)
if(MINGW) # each template is a section, and object files of Windows have 65,279 at most otherwise
  target_compile_options(tenon_unoptimised INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wa,-mbig-obj>)
endif()
if(TENON_SANITIZE STREQUAL "address") # UBSan watches what is tested (ADR 22)
  target_compile_options(tenon_unoptimised INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize=undefined>)
endif()

# tenon_self_contained(<target>): a program or plugin that needs no DLL of the compiler's next to it. A program that uses tenon.dll by its C++
# API is not one: exceptions are caught by type only where there is one C++ library (windows_dlls.cmake).
function(tenon_self_contained target)
  if(MINGW)
    target_link_options(${target} PRIVATE -static)
  endif()
endfunction()

# tenon_helper_program(<target> <name>): lib/tenon/<name>, a program that Tenon starts, next to lib/tenon/backends (support_folder() in
# plugins/loader/find.h).
function(tenon_helper_program target name)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/tenon INSTALL_RPATH "$ORIGIN/..")
  set_property(GLOBAL APPEND PROPERTY TENON_HELPER_PROGRAMS ${target})
  tenon_self_contained(${target})
endfunction()
