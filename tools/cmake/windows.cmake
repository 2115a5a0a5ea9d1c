# SPDX-License-Identifier: Apache-2.0
# Toolchain file: programs for Windows on x86-64, compiled by Debian's MinGW-w64 and run by Wine. `tools/setup --windows` installs both,
# tools/windows-dependencies builds the libraries in TENON_WINDOWS_PREFIX.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(TENON_WINDOWS_PREFIX ${CMAKE_CURRENT_LIST_DIR}/../../build/windows-prefix CACHE PATH "What tools/windows-dependencies wrote")
get_filename_component(TENON_WINDOWS_PREFIX ${TENON_WINDOWS_PREFIX} ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TENON_WINDOWS_PREFIX)

# The names end in -posix: Debian's other variant of the compiler has neither std::thread nor std::mutex.
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../wine-run)
set(CMAKE_FIND_ROOT_PATH ${TENON_WINDOWS_PREFIX} /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ZLIB_LIBRARY /usr/x86_64-w64-mingw32/lib/libz.a CACHE FILEPATH "The static zlib, not the import library of zlib1.dll")
# GNU ld takes a minute for a test program that LLVM's linker links in two seconds. DLLs are linked by GNU ld.
set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
# find_package(Boost) would otherwise look for the name of a library's file.
set(Boost_NO_BOOST_CMAKE ON)
