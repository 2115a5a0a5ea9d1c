# SPDX-License-Identifier: Apache-2.0
# Toolchain file: programs for Linux on 64-bit Arm (AArch64), compiled by Debian's cross compiler and run by QEMU. `tools/setup --arm64`
# installs both, tools/arm64-dependencies unpacks the libraries in TENON_ARM64_PREFIX.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(TENON_ARM64_PREFIX ${CMAKE_CURRENT_LIST_DIR}/../../build/arm64-prefix CACHE PATH "What tools/arm64-dependencies wrote")
get_filename_component(TENON_ARM64_PREFIX ${TENON_ARM64_PREFIX} ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TENON_ARM64_PREFIX)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../arm64-run)
set(CMAKE_FIND_ROOT_PATH ${TENON_ARM64_PREFIX} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# find_package(Boost) would otherwise look for the name of a library's file.
set(Boost_NO_BOOST_CMAKE ON)
