# The targets that carry flags: tenon::abi (the header), tenon::flags (numerics, warnings, sanitizers; for our own code only).
add_library(tenon_abi INTERFACE)
add_library(tenon::abi ALIAS tenon_abi)
target_include_directories(tenon_abi INTERFACE ${PROJECT_SOURCE_DIR}/plugins/abi)

add_library(tenon_flags INTERFACE)
add_library(tenon::flags ALIAS tenon_flags)
# nvcc hands device code to a compiler of its own: its flags are in backends/cuda.
target_compile_options(tenon_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:
  -ffp-contract=off  # the same bits from every compiler: a fused multiply-add is written, never inferred
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # GCC 12 sees overlaps in `"text" + std::string` that are not there (GCC bug 105329)
  $<$<BOOL:${TENON_WARNINGS_AS_ERRORS}>:-Werror>>)
if(TENON_SANITIZE STREQUAL "address")
  target_compile_options(tenon_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(tenon_flags INTERFACE -fsanitize=address,undefined)
elseif(TENON_SANITIZE STREQUAL "thread")
  target_compile_options(tenon_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(tenon_flags INTERFACE -fsanitize=thread)
elseif(TENON_SANITIZE)
  message(FATAL_ERROR "TENON_SANITIZE is '${TENON_SANITIZE}': wanted address, thread or nothing")
endif()
