# SPDX-License-Identifier: Apache-2.0
# FindOpenBLASSerial: OpenBLAS without threads of its own, as a static archive (Debian: libopenblas-serial-dev; for Windows:
# tools/windows-dependencies).
#
#   OpenBLAS::serial               imported target: archive, cblas.h, a lock that makes it safe to call from several threads, and the
#                                  choice of kernels for processors that it does not know
#   OpenBLASSerial_LIBRARY         the archive
#   OpenBLASSerial_INCLUDE_DIR     the folder of its cblas.h
#
# Debian ships neither a CMake target nor a versioned name for it; the serial build has a folder of its own under the multiarch folders.
find_library(OpenBLASSerial_LIBRARY
  NAMES libopenblas.a
  PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib /usr/local/lib /lib
  PATH_SUFFIXES openblas-serial
  NO_DEFAULT_PATH)
find_path(OpenBLASSerial_INCLUDE_DIR
  NAMES cblas.h
  PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} /usr/include /usr/local/include /include
  PATH_SUFFIXES openblas-serial
  NO_DEFAULT_PATH)
mark_as_advanced(OpenBLASSerial_LIBRARY OpenBLASSerial_INCLUDE_DIR)

if(OpenBLASSerial_INCLUDE_DIR)
  file(STRINGS ${OpenBLASSerial_INCLUDE_DIR}/openblas_config.h _version REGEX "OPENBLAS_VERSION")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" OpenBLASSerial_VERSION "${_version}")
  unset(_version)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLASSerial
  REQUIRED_VARS OpenBLASSerial_LIBRARY OpenBLASSerial_INCLUDE_DIR
  VERSION_VAR OpenBLASSerial_VERSION
  REASON_FAILURE_MESSAGE "On Debian: apt install libopenblas-serial-dev, or for Windows run tools/windows-dependencies")

if(OpenBLASSerial_FOUND AND NOT TARGET OpenBLAS::serial)
  find_package(Threads REQUIRED)
  add_library(OpenBLAS::serial STATIC IMPORTED)
  set_target_properties(OpenBLAS::serial PROPERTIES
    IMPORTED_LOCATION ${OpenBLASSerial_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${OpenBLASSerial_INCLUDE_DIR}
    # The archive's table of packing buffers has no lock: openblas_serial/lock.cpp, compiled by every consumer, adds one.
    INTERFACE_SOURCES "${CMAKE_CURRENT_LIST_DIR}/openblas_serial/lock.cpp;${CMAKE_CURRENT_LIST_DIR}/openblas_serial/${TENON_SYSTEM}/memory.cpp"
    INTERFACE_LINK_OPTIONS "-Wl,--wrap=blas_memory_alloc;-Wl,--wrap=blas_memory_free"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;m")
  # An archive with the kernels of several processors chooses among them when it is loaded.
  file(STRINGS ${OpenBLASSerial_LIBRARY} _choice REGEX "^gotoblas_dynamic_init$" LIMIT_COUNT 1)
  if(_choice)
    set_property(TARGET OpenBLAS::serial APPEND PROPERTY INTERFACE_SOURCES "${CMAKE_CURRENT_LIST_DIR}/openblas_serial/processor.cpp")
    set_property(TARGET OpenBLAS::serial APPEND PROPERTY INTERFACE_LINK_OPTIONS "-Wl,--wrap=gotoblas_dynamic_init;-Wl,--wrap=getenv")
  endif()
  unset(_choice)
endif()
