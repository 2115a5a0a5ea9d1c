// SPDX-License-Identifier: Apache-2.0
#include "static_shared.h"

#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "sanitizers.h"

// Of the dynamic linker: the address of a thread's copy of a library's segment, which it allocates at the first call. The segment begins at
// offset 0 on x86-64 and AArch64.
// Source  Drepper: ELF Handling For Thread-Local Storage (2013), 3.4.2 "x86-64 specific"
struct ModuleAndOffset {
  unsigned long module, offset;
};
extern "C" void* __tls_get_addr(ModuleAndOffset*);

namespace tenon::emulation {
namespace {

constexpr int filled_blocks = 8;

/// The segment of the variables of threads of a library.
struct Segment {
  std::size_t module = 0, bytes = 0;
  int left = filled_blocks;  ///< blocks before which it is filled
};

/// The segment of the library that has code at an address; empty if it is the program.
Segment segment_of(const void* code) {
  struct Search {
    std::uintptr_t address;
    Segment found;
    bool is_program;
  } search{reinterpret_cast<std::uintptr_t>(code), {}, true};
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* data) {
        Search& s = *static_cast<Search*>(data);
        const bool is_program = std::exchange(s.is_program, false);  // the first one
        bool has_code = false;
        std::size_t bytes = 0;
        for (int i = 0; i < library->dlpi_phnum; ++i) {
          const ElfW(Phdr)& header = library->dlpi_phdr[i];
          if (header.p_type == PT_TLS) bytes = header.p_memsz;
          if (header.p_type == PT_LOAD && s.address - library->dlpi_addr - header.p_vaddr < header.p_memsz) has_code = true;
        }
        if (has_code && !is_program) s.found = {library->dlpi_tls_modid, bytes};
        return has_code ? 1 : 0;
      },
      &search);
  return search.found;
}

/// The same, remembered for the calling thread.
Segment& remembered_segment_of(const void* kernel) {
  static thread_local std::unordered_map<const void*, Segment> of_kernels;
  const auto [at, is_new] = of_kernels.try_emplace(kernel);
  if (is_new) at->second = segment_of(kernel);
  return at->second;
}

unsigned char* begin_of(const Segment& segment) {
  ModuleAndOffset begin{segment.module, 0};
  return static_cast<unsigned char*>(__tls_get_addr(&begin));
}

}  // namespace

bool fill_static_shared(const void* kernel) {
  if (address_sanitized || kernel == nullptr) return false;
  Segment& segment = remembered_segment_of(kernel);
  if (segment.bytes == 0 || segment.left == 0) return false;
  --segment.left;
  std::memset(begin_of(segment), 0xff, segment.bytes);
  return true;
}

bool is_static_shared_unwritten(const void* kernel) {
  const Segment& segment = remembered_segment_of(kernel);
  const unsigned char* const begin = begin_of(segment);
  return std::all_of(begin, begin + segment.bytes, [](unsigned char byte) { return byte == 0xff; });
}

}  // namespace tenon::emulation
