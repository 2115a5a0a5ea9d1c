# SPDX-License-Identifier: Apache-2.0
# Debian packages of the components of install.cmake: `tools/package --deb`, by CPack. Files lie under /usr as in the installed tree.
#
#   libtenon1            libtenon.so.1
#   libtenon-dev         headers, libtenon_sdk.a, CMake and pkg-config files, the template and the examples
#   tenon-backends       the reference and openblas backends
#   tenon-backend-cuda   the cuda backend, which opens the CUDA libraries when it is used
#   tenon                the command, its models and pages
#   tenon-transport-mpi  the transport that connects processes by MPI
#   libtenon-blas        libtenon_blas.so and libblas.so.3 in a folder of its own
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tenon)
set(CPACK_PACKAGE_VENDOR "The Tenon authors")
set(CPACK_PACKAGE_CONTACT "The Tenon authors <tenon@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL library dev backends tools)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_SECTION science)

# tenon_deb(<component> <package> "<description>" [DEPENDS <relation>...] [SUGGESTS <relation>...])
macro(tenon_deb component package description)
  cmake_parse_arguments(deb "" "" "DEPENDS;SUGGESTS" ${ARGN})
  string(TOUPPER ${component} upper)
  list(JOIN deb_DEPENDS ", " CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS)
  list(JOIN deb_SUGGESTS ", " CPACK_DEBIAN_${upper}_PACKAGE_SUGGESTS)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description}")
endmacro()

set(same "(= ${PROJECT_VERSION})")
tenon_deb(library libtenon1 "deep learning runtime, library\n Runs and trains models on backends that it loads from shared libraries.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_REPLACES libtenon0) # of builds of 0.1: it has the same documents
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONFLICTS libtenon0)
tenon_deb(backends tenon-backends "deep learning runtime, backends for CPUs\n The openblas backend, and the reference backend that others are tested against.")
tenon_deb(tools tenon "deep learning runtime, command line\n Trains, evaluates, runs, quantises and benchmarks models, and tests backends."
  DEPENDS "libtenon1 ${same}" "tenon-backends ${same}" SUGGESTS tenon-backend-cuda)
tenon_deb(dev libtenon-dev "deep learning runtime, headers\n For programs that use the runtime and for backends."
  DEPENDS "libtenon1 ${same}")
if(TARGET tenon_blas)
  list(APPEND CPACK_COMPONENTS_ALL blas)
  tenon_deb(blas libtenon-blas "deep learning runtime, BLAS\n The BLAS interface on the runtime's devices, for programs that are linked with any BLAS."
    DEPENDS "libtenon1 ${same}" "tenon-backends ${same}")
endif()
if(TARGET tenon_backend_cuda)
  list(APPEND CPACK_COMPONENTS_ALL backend_cuda)
  tenon_deb(backend_cuda tenon-backend-cuda "deep learning runtime, backend for NVIDIA GPUs\n Needs a driver, cuBLAS and cuDNN where it runs."
    SUGGESTS nvidia-driver) # NVIDIA's packages of cuBLAS and cuDNN have the toolkit's version in their names
endif()
if(TARGET tenon_transport_mpi)
  list(APPEND CPACK_COMPONENTS_ALL transport_mpi)
  tenon_deb(transport_mpi tenon-transport-mpi "deep learning runtime, transport for MPI\n Connects processes that mpirun starts, so that they train a model together."
    DEPENDS "libtenon1 ${same}" SUGGESTS openmpi-bin)
endif()
include(CPack)
