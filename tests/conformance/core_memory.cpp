// Memory: alignment, sizes from nothing to more than there is, blocks inside blocks, books that balance, host memory imported.
#include <algorithm>
#include <cstring>
#include <limits>
#include <list>

#include "core.h"

namespace tenon::conformance {
namespace {

void alignment(Kit& kit) {
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{63}, std::uint64_t{64}, std::uint64_t{4097}, std::uint64_t{1} << 20}) {
    const Memory memory(kit, size);
    if (memory.address % kit.device.device_info().alignment_bytes != 0) {
      fail(fmt::format("{} bytes were put at 0x{:x}, which is not aligned to {}", size, memory.address,
                       kit.device.device_info().alignment_bytes));
    }
  }
}

void zero_size(Kit& kit) {
  const Memory nothing(kit, 0), more(kit, 0);
  ErrorText error;
  const tenon_backend_table& table = kit.device.table();
  expect_ok(table.fill(kit.device.handle(), nothing.address, 0, 1, kit.device.stream(), error), error, "a fill of no bytes of no memory");
  expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
}

/// Sizes that no device has; some of them wrap around when they are rounded up or when something is put in front of them.
void huge_size(Kit& kit) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  const std::uint64_t alignment = kit.device.device_info().alignment_bytes;
  for (const std::uint64_t size : {std::uint64_t{1} << 60, sign - 1, sign - alignment, sign, sign + 1, most, most - 1, most - 63, most - 64,
                                   most - alignment, most - alignment + 1, most - 4095, most - 4096, most - (std::uint64_t{1} << 21)}) {
    ErrorText error;
    tenon_memory* memory = nullptr;
    std::uint64_t address = 0;
    const tenon_status status =
        kit.device.table().memory_allocate(kit.device.handle(), TENON_MEMORY_DEVICE, size, &memory, &address, error);
    expect_refusal(status, error, {TENON_OUT_OF_MEMORY, TENON_INVALID_ARGUMENT},
                   fmt::format("allocating {} bytes, more than there is", size));
    if (memory != nullptr || address != 0) fail("a failed memory_allocate wrote its out-parameters");
  }
  expect_sane(kit);
}

void kinds(Kit& kit) {
  for (const std::uint32_t kind : {TENON_MEMORY_DEVICE, TENON_MEMORY_HOST, TENON_MEMORY_PINNED}) {
    ErrorText error;
    tenon_memory* memory = nullptr;
    std::uint64_t address = 0;
    const tenon_status status = kit.device.table().memory_allocate(kit.device.handle(), kind, 256, &memory, &address, error);
    if (status == TENON_OK) {
      kit.device.table().memory_free(memory);
    } else {
      expect_refusal(status, error, {TENON_UNSUPPORTED}, "a memory kind of the header");
      if (kind == TENON_MEMORY_DEVICE) fail("device memory is mandatory: " + error.text());
    }
  }
  ErrorText error;
  tenon_memory* memory = nullptr;
  std::uint64_t address = 0;
  expect_refusal(kit.device.table().memory_allocate(kit.device.handle(), 77, 256, &memory, &address, error), error,
                 {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, "memory of kind 77");
}

void stats(Kit& kit) {
  const tenon_memory_stats before = stats_of(kit);
  {
    const Memory memory(kit, 1 << 20);
    const tenon_memory_stats during = stats_of(kit);
    if (during.live_size_bytes < before.live_size_bytes + (1 << 20)) {
      fail(fmt::format("live bytes went from {} to {} by an allocation of {}", before.live_size_bytes, during.live_size_bytes, 1 << 20));
    }
    if (during.peak_size_bytes < during.live_size_bytes) fail("the peak is below what is live");
    if (during.allocation_count <= before.allocation_count) fail("an allocation was not counted");
  }
  const tenon_memory_stats after = stats_of(kit);
  if (after.live_size_bytes != before.live_size_bytes) {
    fail(fmt::format("live bytes are {} after the memory was freed, {} before it was allocated", after.live_size_bytes,
                     before.live_size_bytes));
  }
}

void plans_give_back(Kit& kit) {
  expect_sane(kit);
  const tenon_memory_stats before = stats_of(kit);
  const std::int64_t blocks = kit.device.host().live_blocks();
  for (int round = 0; round < 3; ++round) expect_sane(kit);
  if (stats_of(kit).live_size_bytes != before.live_size_bytes) fail("plans that were destroyed left device memory behind");
  if (kit.device.host().live_blocks() != blocks) fail("plans that were destroyed left host memory behind");
}

void distinct_blocks(Kit& kit) {
  std::list<Memory> blocks;
  for (std::uint64_t i = 0; i < 32; ++i) {
    blocks.emplace_back(kit, 100 + i);
    upload(kit, blocks.back().address, pattern(100 + i, i));
  }
  std::uint64_t i = 0;
  for (const Memory& block : blocks) {
    expect_bytes(pattern(100 + i, i), download(kit, block.address, 100 + i), "a block among 32");
    ++i;
  }
}

/// The core allocates in large pieces and hands out addresses from the middle of them: operands anywhere in one block, element-aligned.
void suballocation(Kit& kit) {
  require_relu(kit);
  constexpr std::int64_t n = 37;
  constexpr std::uint64_t bytes = n * sizeof(float);
  const Net net = relu_net(n);
  const Plan plan(kit.device, net);
  expect_ready(plan);
  const std::uint64_t alignment = std::max<std::uint64_t>(kit.device.device_info().alignment_bytes, 64);
  const std::uint64_t half = (bytes / alignment + 3) * alignment * (small_sizes() ? 4 : 16);
  const Memory block(kit, 2 * half), workspace(kit, plan.info().workspace_size_bytes);
  const std::vector<unsigned char> clean = pattern(2 * half, 11);
  for (std::uint64_t offset = 0; offset + bytes <= half; offset += offset % alignment == 0 ? 4 : alignment - 4) {
    std::vector<unsigned char> content = clean;
    std::memcpy(content.data() + offset, net.values[0].array.bytes(), bytes);
    upload(kit, block.address, content);
    const std::uint64_t to = half + (half - bytes - offset) / 4 * 4;  // from the other end, so that the two never lie alike
    const std::uint64_t addresses[] = {block.address + offset, block.address + to};
    tenon_bindings bindings{};
    bindings.struct_size = sizeof bindings;
    bindings.address_count = 2;
    bindings.addresses = addresses;
    ErrorText error;
    expect_ok(kit.device.table().plan_execute(plan.handle(), &bindings, workspace.address, kit.device.stream(), error), error,
              "plan_execute on addresses inside a block");
    expect_ok(kit.device.synchronize(error), error, "stream_synchronize");
    const std::vector<unsigned char> after = download(kit, block.address, 2 * half);
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
void import_terms(Kit& kit) {
  // The header asks for no alignment; a page satisfies every device.
  std::vector<unsigned char> storage(3 * 4096);
  const std::size_t lead = 4096 - reinterpret_cast<std::uintptr_t>(storage.data()) % 4096;
  unsigned char* host = storage.data() + lead;
  const std::vector<unsigned char> bytes = pattern(4096, 5);
  std::copy(bytes.begin(), bytes.end(), host);
  ErrorText error;
  tenon_memory* memory = nullptr;
  std::uint64_t address = 0;
  const tenon_status status = kit.device.table().memory_import(kit.device.handle(), host, bytes.size(), terms, &memory, &address, error);
  if (status != TENON_OK) {
    if (terms == TENON_IMPORT_COPY) fail("memory_import by copy is always possible: " + error.text());
    expect_refusal(status, error, {TENON_UNSUPPORTED}, "memory_import");
    throw NotRun("the backend refuses these terms and says so: " + error.text());
  }
  struct Free {
    const Kit& kit;
    tenon_memory* memory;
    ~Free() { kit.device.table().memory_free(memory); }
  } free_at_end{kit, memory};
  expect_bytes(bytes, download(kit, address, bytes.size()), "imported memory");
  if (terms == TENON_IMPORT_COPY) {
    std::fill_n(host, bytes.size(), static_cast<unsigned char>(0));
    expect_bytes(bytes, download(kit, address, bytes.size()), "memory imported by copy, after the host changed its own");
  }
  if (terms == TENON_IMPORT_BORROW_READ_ONLY) {
    const std::vector<unsigned char> other = pattern(4096, 6);
    std::copy(other.begin(), other.end(), host);
    expect_bytes(other, download(kit, address, other.size()), "borrowed memory, after the host changed it");
  }
  if (terms == TENON_IMPORT_BORROW_READ_WRITE) {
    const std::vector<unsigned char> other = pattern(4096, 7);
    upload(kit, address, other);
    expect_bytes(other, std::vector<unsigned char>(host, host + other.size()), "borrowed memory that the device wrote");
  }
}

void import_of_nothing_known(Kit& kit) {
  unsigned char byte = 0;
  ErrorText error;
  tenon_memory* memory = nullptr;
  std::uint64_t address = 0;
  expect_refusal(kit.device.table().memory_import(kit.device.handle(), &byte, 1, 77, &memory, &address, error), error,
                 {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, "import under terms 77");
}

void host_memory_intact(Kit& kit) {
  expect_sane(kit);
  if (!kit.device.host().damage().empty()) fail(kit.device.host().damage());
}

}  // namespace

std::vector<Case> core_memory_cases() {
  return core_cases({
      {"memory/alignment", alignment},
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
      {"import/unknown_terms", import_of_nothing_known},
      {"host/memory_intact", host_memory_intact},
  });
}

}  // namespace tenon::conformance
