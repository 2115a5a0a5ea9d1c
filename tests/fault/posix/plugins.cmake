# SPDX-License-Identifier: Apache-2.0
# Plugins that only an ELF system refuses. Fills `system_faults`.
add_fault_plugin(undefined_symbol needs_absent.c)

# Plugins built against newer versions of the C library, the C++ library and a vendor's library than exist, and for another C library.
function(add_newer_library name soname version)
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${name}.map)
  file(CONFIGURE OUTPUT ${map} @ONLY CONTENT "${version} { global: tenon_absent_function; local: *; };\n")
  add_library(fault_${name}_library SHARED absent.c)
  target_link_libraries(fault_${name}_library PRIVATE tenon::abi)
  set_target_properties(fault_${name}_library PROPERTIES
    OUTPUT_NAME ${name} NO_SONAME ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/absent)
  target_link_options(fault_${name}_library PRIVATE -Wl,-soname,${soname} -Wl,--version-script=${map})
  add_fault_plugin(${name} needs_absent.c)
  target_link_libraries(fault_${name} PRIVATE fault_${name}_library)
  set_target_properties(fault_${name} PROPERTIES LINKER_LANGUAGE C)
endfunction()
add_newer_library(newer_libc libc.so.6 GLIBC_2.99)
add_newer_library(newer_libstdcxx libstdc++.so.6 GLIBCXX_3.4.99)
add_newer_library(musl libc.musl-x86_64.so.1 MUSL_1)
set(system_faults undefined_symbol newer_libc newer_libstdcxx musl)

# A library for another processor, made by a real linker.
find_program(TENON_AARCH64_COMPILER aarch64-linux-gnu-gcc)
if(TENON_AARCH64_COMPILER)
  set(foreign ${fault_directory}/aarch64/libtenon_backend_aarch64.so)
  add_custom_command(OUTPUT ${foreign} DEPENDS absent.c
    COMMAND ${CMAKE_COMMAND} -E make_directory ${fault_directory}/aarch64
    COMMAND ${TENON_AARCH64_COMPILER} -shared -fPIC -nostdlib -I${PROJECT_SOURCE_DIR}/plugins/abi
      ${CMAKE_CURRENT_SOURCE_DIR}/absent.c -o ${foreign})
  add_custom_target(fault_aarch64 DEPENDS ${foreign})
  list(APPEND system_faults aarch64)
endif()
