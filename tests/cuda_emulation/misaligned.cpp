// SPDX-License-Identifier: Apache-2.0
// What -fsanitize=alignment calls before a misaligned access; on a GPU that is cudaErrorMisalignedAddress, which ends the context.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "engine.h"
#include "sanitizers.h"

#ifndef TENON_EMULATION_ASAN  // a sanitizer has a library with this function

namespace {
/// What the compilers store for each access.
/// Source  compiler-rt, ubsan_handlers.h: TypeMismatchData
struct Access {
  const char* file;
  std::uint32_t line, column;
  struct Type {
    std::uint16_t kind, info;
    char name[1];
  } const* type;
  unsigned char log_alignment, kind;
};
}  // namespace

extern "C" [[noreturn]] __attribute__((visibility("default"))) void __ubsan_handle_type_mismatch_v1_abort(const Access* access,
                                                                                                          std::uintptr_t address);

void __ubsan_handle_type_mismatch_v1_abort(const Access* access, std::uintptr_t address) {
  const std::string thread = tenon::emulation::running_thread();
  std::fprintf(stderr, "cuda emulation: %s%s%s:%u: address 0x%llx of a value of type %s is not a multiple of %u\n", thread.c_str(),
               thread.empty() ? "" : ": ", access->file, access->line, static_cast<unsigned long long>(address), access->type->name,
               1u << access->log_alignment);
  std::abort();
}

#endif
