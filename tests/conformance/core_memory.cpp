// SPDX-License-Identifier: Apache-2.0
// Memory: alignment, sizes from 0 to more than exists, suballocation, statistics, imported host memory.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <list>

#include "core.h"

namespace tenon::conformance {
namespace {

void alignment(CaseContext& context) {
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{63}, std::uint64_t{64}, std::uint64_t{4097}, std::uint64_t{1} << 20}) {
    const Memory memory(context, size);
    if (memory.address % context.device.device_info().alignment_bytes != 0) {
      fail(fmt::format("{} bytes were put at 0x{:x}, which is not aligned to {}", size, memory.address,
                       context.device.device_info().alignment_bytes));
    }
  }
}

/// Alignments up to the device's own are honoured, larger ones honoured or refused.
void alignment_requests(CaseContext& context) {
  const std::uint64_t own = context.device.device_info().alignment_bytes;
  for (std::uint64_t alignment = 1; alignment <= std::max(own, std::uint64_t{1} << 16); alignment *= 2) {
    const tenon_memory_request request{
        .struct_size = sizeof request, .kind = TENON_MEMORY_DEVICE, .size_bytes = 100, .alignment_bytes = alignment};
    const std::string what = fmt::format("memory aligned to {} on a device that aligns to {}", alignment, own);
    Made made;
    ErrorText error;
    const tenon_status status = context.device.table().memory_allocate(context.device.handle(), &request, &made, error);
    if (status != TENON_OK && alignment > own) {
      expect_refusal(status, error, {TENON_UNSUPPORTED}, what);
      if (made.is_written()) fail(what + ": a failed memory_allocate wrote its result");
      continue;
    }
    expect_ok(status, error, what.c_str());
    context.device.table().memory_free(made.memory);
    const std::uint64_t expected = std::max(alignment, own);
    if (made.address % expected != 0) fail(fmt::format("{}: expected a multiple of {}, got 0x{:x}", what, expected, made.address));
  }
}

/// Through the host pointer of memory, the host and the device see the same bytes.
void host_pointers(CaseContext& context) {
  constexpr std::size_t size = 256;
  const bool addressable = (context.device.device_info().flags & TENON_DEVICE_HOST_ADDRESSABLE) != 0;
  for (const std::uint32_t kind : {TENON_MEMORY_DEVICE, TENON_MEMORY_HOST, TENON_MEMORY_PINNED}) {
    struct Allocated : Made {
      explicit Allocated(const CaseContext& c) : context(c) {}
      ~Allocated() {
        if (memory != nullptr) context.device.table().memory_free(memory);
      }
      const CaseContext& context;
    } made(context);
    ErrorText error;
    const tenon_status status = allocate(context.device.table(), context.device.handle(), kind, size, made, error);
    if (status == TENON_UNSUPPORTED) continue;  // core/memory/kinds judges that
    expect_ok(status, error, "memory_allocate");
    const std::string what = fmt::format("memory of kind {}", kind);
    if ((kind != TENON_MEMORY_DEVICE || addressable) && address_of(made.host) != made.address) {
      fail(fmt::format("{}: expected its address 0x{:x} as the host pointer, got 0x{:x}", what, made.address, address_of(made.host)));
    }
    if (made.host == nullptr) continue;
    auto* const host = static_cast<unsigned char*>(made.host);
    const std::vector<unsigned char> first = pattern(size, 31), second = pattern(size, 32);
    std::copy(first.begin(), first.end(), host);
    if (kind == TENON_MEMORY_DEVICE) {
      expect_bytes(first, download(context, made.address, size), (what + ", written by the host").c_str());
      upload(context, made.address, second);
    } else {  // for copies only
      const Memory there(context, size);
      expect_ok("a copy from host memory of the device", &Device::upload, context.device, there.address, host, size);
      expect_bytes(first, download(context, there.address, size), (what + ", written by the host and copied").c_str());
      upload(context, there.address, second);
      expect_ok("a copy to host memory of the device", &Device::download, context.device, host, there.address, size);
    }
    expect_bytes(second, std::vector<unsigned char>(host, host + size), (what + ", written by the device").c_str());
  }
}

/// A later core's requests are longer, an earlier core's results shorter.
void struct_sizes(CaseContext& context) {
  const tenon_backend_table& table = context.device.table();
  const Longer request(tenon_memory_request{.kind = TENON_MEMORY_DEVICE, .size_bytes = 256});
  Longer result(tenon_memory_result{});
  expect_ok("memory_allocate with longer structs", table.memory_allocate, context.device.handle(), &request.head, &result.head);
  table.memory_free(result.head.memory);

  std::vector<unsigned char> bytes = pattern(256, 33);
  const Longer given(tenon_memory_import{.terms = TENON_IMPORT_COPY, .host = bytes.data(), .size_bytes = bytes.size()});
  expect_ok("memory_import with longer structs", table.memory_import, context.device.handle(), &given.head, &result.head);
  table.memory_free(result.head.memory);

  Made shorter;
  shorter.struct_size = offsetof(tenon_memory_result, host);
  shorter.host = &shorter;
  expect_ok("memory_allocate with a shorter result", table.memory_allocate, context.device.handle(), &request.head, &shorter);
  table.memory_free(shorter.memory);
  if (shorter.host != &shorter) fail(fmt::format("memory_allocate wrote beyond the {} bytes of its result", shorter.struct_size));
}

void zero_size(CaseContext& context) {
  const Memory nothing(context, 0), more(context, 0);
  const tenon_backend_table& table = context.device.table();
  expect_ok("a fill of 0 bytes of an empty block", table.fill, context.device.handle(), nothing.address, 0, 1, context.device.stream());
  synchronize(context);
}

/// Sizes that no device has; some of them overflow when they are rounded up or when a header is added.
void huge_size(CaseContext& context) {
  constexpr std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  const std::uint64_t alignment = context.device.device_info().alignment_bytes;
  for (const std::uint64_t size : {std::uint64_t{1} << 60, sign - 1, sign - alignment, sign, sign + 1, max, max - 1, max - 63, max - 64,
                                   max - alignment, max - alignment + 1, max - 4095, max - 4096, max - (std::uint64_t{1} << 21)}) {
    ErrorText error;
    Made made;
    const tenon_status status = allocate(context.device.table(), context.device.handle(), TENON_MEMORY_DEVICE, size, made, error);
    expect_refusal(status, error, {TENON_OUT_OF_MEMORY, TENON_INVALID_ARGUMENT},
                   fmt::format("allocating {} bytes, more than exists", size));
    if (made.is_written()) fail("a failed memory_allocate wrote its result");
  }
  expect_sane(context);
}

void kinds(CaseContext& context) {
  for (const std::uint32_t kind : {TENON_MEMORY_DEVICE, TENON_MEMORY_HOST, TENON_MEMORY_PINNED}) {
    ErrorText error;
    Made made;
    const tenon_status status = allocate(context.device.table(), context.device.handle(), kind, 256, made, error);
    if (status == TENON_OK) {
      context.device.table().memory_free(made.memory);
    } else {
      expect_refusal(status, error, {TENON_UNSUPPORTED}, "a memory kind of the header");
      if (kind == TENON_MEMORY_DEVICE) fail("device memory is mandatory: " + error.text());
    }
  }
  ErrorText error;
  Made made;
  expect_refusal(allocate(context.device.table(), context.device.handle(), 77, 256, made, error), error, {TENON_UNSUPPORTED},
                 "memory of kind 77");
}

void stats(CaseContext& context) {
  const tenon_memory_stats before = stats_of(context);
  {
    const Memory memory(context, 1 << 20);
    const tenon_memory_stats during = stats_of(context);
    if (during.live_size_bytes < before.live_size_bytes + (1 << 20)) {
      fail(fmt::format("live bytes went from {} to {} by an allocation of {}", before.live_size_bytes, during.live_size_bytes, 1 << 20));
    }
    if (during.peak_size_bytes < during.live_size_bytes) fail("the peak is below what is live");
    if (during.allocation_count <= before.allocation_count) fail("an allocation was not counted");
  }
  const tenon_memory_stats after = stats_of(context);
  if (after.live_size_bytes != before.live_size_bytes) {
    fail(fmt::format("live bytes are {} after the memory was freed, {} before it was allocated", after.live_size_bytes,
                     before.live_size_bytes));
  }
}

void plans_give_back(CaseContext& context) {
  expect_sane(context);
  const tenon_memory_stats before = stats_of(context);
  const std::int64_t blocks = context.device.host().live_blocks();
  for (int round = 0; round < 3; ++round) expect_sane(context);
  if (stats_of(context).live_size_bytes != before.live_size_bytes) fail("plans that were destroyed leaked device memory");
  if (context.device.host().live_blocks() != blocks) fail("plans that were destroyed leaked host memory");
}

void distinct_blocks(CaseContext& context) {
  std::list<Memory> blocks;
  for (std::uint64_t i = 0; i < 32; ++i) {
    blocks.emplace_back(context, 100 + i);
    upload(context, blocks.back().address, pattern(100 + i, i));
  }
  std::uint64_t i = 0;
  for (const Memory& block : blocks) {
    expect_bytes(pattern(100 + i, i), download(context, block.address, 100 + i), "a block among 32");
    ++i;
  }
}

/// The core suballocates: operands may be anywhere in a block, no better aligned than the device asks for.
void suballocation(CaseContext& context) {
  require_relu(context);
  constexpr std::int64_t n = 37;
  constexpr std::uint64_t bytes = n * sizeof(float);
  const Net net = relu_net(n);
  const Plan plan(context.device, net);
  expect_ready(plan);
  const std::uint64_t alignment = std::max<std::uint64_t>(context.device.device_info().alignment_bytes, 64);
  const std::uint64_t step = std::max<std::uint64_t>(context.device.device_info().operand_alignment_bytes, 4);
  const std::uint64_t half = (bytes / alignment + 3) * alignment * (small_sizes() ? 4 : 16);
  const Memory block(context, 2 * half), workspace(context, plan.info().workspace_size_bytes);
  const std::vector<unsigned char> clean = pattern(2 * half, 11);
  for (std::uint64_t offset = 0; offset + bytes <= half; offset += offset % alignment == 0 ? step : alignment - step) {
    std::vector<unsigned char> content = clean;
    std::memcpy(content.data() + offset, net.values[0].array.bytes(), bytes);
    upload(context, block.address, content);
    const std::uint64_t to = half + (half - bytes - offset) / step * step;  // from the other end, so that the two alignments differ
    const std::uint64_t addresses[] = {block.address + offset, block.address + to};
    tenon_bindings bindings{.struct_size = sizeof bindings, .address_count = 2, .addresses = addresses};
    expect_ok("plan_execute on addresses inside a block", context.device.table().plan_execute, plan.handle(), &bindings, workspace.address,
              context.device.stream());
    synchronize(context);
    const std::vector<unsigned char> after = download(context, block.address, 2 * half);
    Array y(TENON_DTYPE_F32, {n});
    std::memcpy(y.bytes(), after.data() + to, bytes);
    expect_relu({y});
    std::memcpy(content.data() + to, y.bytes(), bytes);
    expect_bytes(
        content, after,
        fmt::format("a block of which bytes {} to {} were read and {} to {} written", offset, offset + bytes, to, to + bytes).c_str());
  }
}

// ---------------------------------------------------------------- imports

template <std::uint32_t terms>
void import_terms(CaseContext& context) {
  // The header requires no alignment; a page satisfies every device.
  std::vector<unsigned char> storage(3 * 4096);
  const std::size_t lead = 4096 - reinterpret_cast<std::uintptr_t>(storage.data()) % 4096;
  unsigned char* host = storage.data() + lead;
  const std::vector<unsigned char> bytes = pattern(4096, 5);
  std::copy(bytes.begin(), bytes.end(), host);
  ErrorText error;
  Made made;
  const tenon_status status = import(context.device.table(), context.device.handle(), host, bytes.size(), terms, made, error);
  if (status != TENON_OK) {
    if (terms == TENON_IMPORT_COPY) fail("memory_import by copy is always possible: " + error.text());
    expect_refusal(status, error, {TENON_UNSUPPORTED}, "memory_import");
    throw NotRun("the backend refuses these terms and says so: " + error.text());
  }
  struct Free {
    const CaseContext& context;
    tenon_memory* memory;
    ~Free() { context.device.table().memory_free(memory); }
  } free_at_end{context, made.memory};
  const std::uint64_t address = made.address;
  expect_bytes(bytes, download(context, address, bytes.size()), "imported memory");
  if (terms == TENON_IMPORT_COPY) {
    std::fill_n(host, bytes.size(), static_cast<unsigned char>(0));
    expect_bytes(bytes, download(context, address, bytes.size()), "memory imported by copy, after the host changed the original");
  }
  if (terms == TENON_IMPORT_BORROW_READ_ONLY) {
    const std::vector<unsigned char> other = pattern(4096, 6);
    std::copy(other.begin(), other.end(), host);
    expect_bytes(other, download(context, address, other.size()), "borrowed memory, after the host changed it");
  }
  if (terms == TENON_IMPORT_BORROW_READ_WRITE) {
    const std::vector<unsigned char> other = pattern(4096, 7);
    upload(context, address, other);
    expect_bytes(other, std::vector<unsigned char>(host, host + other.size()), "borrowed memory that the device wrote");
  }
}

void import_of_unknown_terms(CaseContext& context) {
  unsigned char byte = 0;
  ErrorText error;
  Made made;
  expect_refusal(import(context.device.table(), context.device.handle(), &byte, 1, 77, made, error), error, {TENON_UNSUPPORTED},
                 "import under terms 77");
}

void host_memory_intact(CaseContext& context) {
  expect_sane(context);
  if (!context.device.host().damage().empty()) fail(context.device.host().damage());
}

}  // namespace

std::vector<Case> core_memory_cases() {
  return core_cases({
      {"memory/alignment", alignment},
      {"memory/alignment_requests", alignment_requests},
      {"memory/host_pointers", host_pointers},
      {"memory/struct_sizes", struct_sizes},
      {"memory/zero_size", zero_size},
      {"memory/huge_size", huge_size},
      {"memory/kinds", kinds},
      {"memory/stats", stats},
      {"memory/plans_give_back", plans_give_back},
      {"memory/distinct_blocks", distinct_blocks},
      {"memory/suballocation", suballocation},
      {"import/copy", import_terms<TENON_IMPORT_COPY>},
      {"import/hold", import_terms<TENON_IMPORT_HOLD>},
      {"import/borrow_read_only", import_terms<TENON_IMPORT_BORROW_READ_ONLY>},
      {"import/borrow_read_write", import_terms<TENON_IMPORT_BORROW_READ_WRITE>},
      {"import/unknown_terms", import_of_unknown_terms},
      {"host/memory_intact", host_memory_intact},
  });
}

}  // namespace tenon::conformance
