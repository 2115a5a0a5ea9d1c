// The optional blocks, where they are offered: packed operands, profiles, collectives, foreign streams, and the host's memory of
// measurements. Recordings are in capture.cpp, BLAS is a profile of its own.
#include <algorithm>
#include <cstring>

#include "core.h"

namespace tenon::conformance {
namespace {

/// The block, if there is one. `slots` are its functions: one that is missing leaves the others without use.
template <class Block>
const Block& block_of(const Block* block, const char* name) {
  if (block == nullptr) throw NotRun(fmt::format("not offered: tenon_backend_table.{} is NULL", name));
  const auto* bytes = reinterpret_cast<const char*>(block);
  for (std::size_t offset = 8; offset < sizeof(Block); offset += sizeof(void*)) {
    void* slot = nullptr;
    std::memcpy(&slot, bytes + offset, sizeof slot);
    if (slot == nullptr)
      fail(fmt::format("slot {} of the {} block is empty: it is offered whole or not at all (NULL in the table)",
                       (offset - 8) / sizeof(void*), name));
  }
  return *block;
}

/// y = x w on whole numbers, w a parameter.
struct Product {
  explicit Product(std::uint32_t weights) {
    Array a(TENON_DTYPE_F32, {4, 8}), b(TENON_DTYPE_F32, {8, 6});
    for (std::int64_t i = 0; i < a.count(); ++i) a.set(i, static_cast<double>(i % 7 - 3));
    for (std::int64_t i = 0; i < b.count(); ++i) b.set(i, static_cast<double>(i % 5 - 2));
    want = Array(TENON_DTYPE_F32, {4, 6});
    for (std::int64_t i = 0; i < want.count(); ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < 8; ++k) sum += a.at(i / 6 * 8 + k) * b.at(k * 6 + i % 6);
      want.set(i, sum);
    }
    const std::uint32_t x = net.input(std::move(a)), y = (w = net.input(std::move(b), {}, weights), net.output(TENON_DTYPE_F32, {4, 6}));
    net.node(TENON_OP_MatMul, line_of(TENON_OP_MatMul).version, &no_attributes, {x, w}, {y});
  }
  void expect(const Outcome& outcome, const char* when) const {
    if (!outcome.ok()) fail(fmt::format("{}: execution failed with {}: {}", when, status_name(outcome.status), outcome.text));
    if (!outcome.damage.empty()) fail(fmt::format("{}: the execution {}", when, outcome.damage));
    const std::string wrong = compare(want, outcome.outputs[0], {});
    if (!wrong.empty()) fail(fmt::format("{}: {}", when, wrong));
  }
  Net net;
  Array want;
  std::uint32_t w = 0;
};

// ---------------------------------------------------------------- packed operands

std::string key_of(const tenon_pack_table& block, tenon_packed* packed) {
  char key[256];
  std::memset(key, 0x7E, sizeof key);
  std::uint64_t size = 0;
  ErrorText error;
  expect_ok(block.info(packed, key, sizeof key, &size, error), error, "pack info");
  if (std::memchr(key, 0, sizeof key) == nullptr) fail("the key of a packed operand does not end in NUL within 256 bytes");
  if (key[0] == 0) fail("a packed operand has an empty key");
  if (size == 0) fail("a packed operand of 48 elements has a size of 0 bytes");
  char little[8];
  std::memset(little, 0x7E, sizeof little);
  const tenon_status status = block.info(packed, little, 4, &size, error);  // cut or refused, never written beyond
  if (status != TENON_OK && status != TENON_INVALID_ARGUMENT)
    fail(fmt::format("pack info with room for 4 bytes of key: {}", status_name(status)));
  if (std::any_of(little + 4, little + 8, [](char c) { return c != 0x7E; })) fail("pack info wrote beyond key_capacity_bytes");
  return key;
}

void packed_operands(Kit& kit) {
  const tenon_pack_table& block = block_of(kit.device.table().pack, "pack");
  require_ops(kit, {TENON_OP_MatMul});
  const Product product(TENON_VALUE_PARAMETER);
  const Wire wire(product.net);
  ErrorText error;
  struct Packed {
    const tenon_pack_table& block;
    tenon_packed* handle = nullptr;
    ~Packed() {
      if (handle != nullptr) block.destroy(handle);
    }
  };
  const Plan first(kit.device, product.net), second(kit.device, product.net);
  expect_ready(first);
  expect_ready(second);
  {
    Packed packed{block}, twin{block};
    const tenon_status status = block.create(kit.device.handle(), &wire.graph, product.w, &packed.handle, error);
    if (status == TENON_UNSUPPORTED) throw NotRun("this operand is not one that the backend packs: " + error.text());
    expect_ok(status, error, "pack create");
    expect_ok(block.create(kit.device.handle(), &wire.graph, product.w, &twin.handle, error), error, "pack create, once more");
    if (key_of(block, packed.handle) != key_of(block, twin.handle)) fail("the same operand packed twice has two keys");
    expect_ok(block.attach(first.handle(), product.w, packed.handle, error), error, "pack attach");
    expect_ok(block.attach(second.handle(), product.w, packed.handle, error), error, "pack attach to a second plan");
  }
  product.expect(first.run(), "a plan with a packed operand that others shared, all but its own reference gone");
  product.expect(second.run(), "the second plan of a packed operand");
  tenon_packed* none = nullptr;
  ErrorText refused;
  const tenon_status status = block.create(kit.device.handle(), &wire.graph, 99, &none, refused);
  if (status == TENON_OK) block.destroy(none);
  expect_refusal(status, refused, {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, "packing value 99 of 3");
  if (none != nullptr) fail("a failed pack create wrote its out-parameter");
}

// ---------------------------------------------------------------- profiles

void profile(Kit& kit) {
  const tenon_profile_table& block = block_of(kit.device.table().profile, "profile");
  require_relu(kit);
  const Net net = relu_net(1000);
  const Plan plan(kit.device, net);
  expect_ready(plan);
  Plan::Bindings bindings(plan, 0xFF);
  ErrorText error;
  expect_ok(block.enable(plan.handle(), 1, error), error, "profile enable");
  for (int round = 0; round < 2; ++round) {
    const Outcome outcome = bindings.execute(1);
    if (!outcome.ok()) fail(fmt::format("a profiled execution failed with {}: {}", status_name(outcome.status), outcome.text));
    expect_relu(outcome.outputs);
  }
  std::vector<tenon_profile_record> records(8);
  std::memset(static_cast<void*>(records.data()), 0x7E, records.size() * sizeof records[0]);
  std::uint32_t count = 0;
  expect_ok(block.read(plan.handle(), records.data(), 8, &count, error), error, "profile read");
  if (count != plan.info().kernel_count)
    fail(fmt::format("{} kernels were profiled, plan_info says that {} are launched", count, plan.info().kernel_count));
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(count, 8); ++i) {
    const tenon_profile_record& record = records[i];
    if (std::memchr(record.algorithm, 0, sizeof record.algorithm) == nullptr) fail("the name of a profiled kernel does not end in NUL");
    if (record.algorithm[0] == 0) fail("a profiled kernel has no name");
    if (record.node != 0 || record.id != 1)
      fail(fmt::format("the kernel of node 0, id 1, is profiled as of node {}, id {}", record.node, record.id));
    if (record.fused_count < 1) fail("a profiled kernel stands for no node");
    if (record.duration_ns > 60'000'000'000u) fail(fmt::format("a relu of 1000 took {} ns by its profile", record.duration_ns));
  }
  std::uint32_t again = 0;
  tenon_profile_record guard;
  std::memset(static_cast<void*>(&guard), 0x7E, sizeof guard);
  const tenon_profile_record before = guard;
  expect_ok(block.read(plan.handle(), &guard, 0, &again, error), error, "profile read without room");
  if (again != count) fail(fmt::format("profile read counts {} records with room for 8 and {} without room", count, again));
  if (std::memcmp(&guard, &before, sizeof guard) != 0) fail("profile read wrote a record and had room for none");
  expect_ok(block.enable(plan.handle(), 0, error), error, "profile disable");
  expect_relu(bindings.execute(1).outputs);
}

// ---------------------------------------------------------------- collectives, by one device alone

void collectives(Kit& kit) {
  const tenon_collective_table& block = block_of(kit.device.table().collectives, "collectives");
  const std::uint8_t id[16] = {1, 2, 3};
  ErrorText error;
  struct Communicator {
    const tenon_collective_table& block;
    tenon_communicator* handle = nullptr;
    ~Communicator() {
      if (handle != nullptr) block.destroy(handle);
    }
  } alone{block};
  const tenon_status status = block.create(kit.device.handle(), id, sizeof id, 0, 1, &alone.handle, error);
  if (status == TENON_UNSUPPORTED) throw NotRun("no communicator of one device: " + error.text());
  expect_ok(status, error, "collectives create");
  constexpr std::uint64_t count = 1000, bytes = count * sizeof(float);
  std::vector<unsigned char> want(bytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i) / 4;
    std::memcpy(want.data() + i * sizeof value, &value, sizeof value);
  }
  const Memory source(kit, bytes), result(kit, bytes);
  const Stream stream(kit);
  const auto check = [&](const char* what, std::uint64_t read_at, const std::function<tenon_status(tenon_error*)>& call) {
    upload(kit, source.address, want);
    upload(kit, result.address, std::vector<unsigned char>(bytes, 0xFF));
    expect_ok(call(error), error, what);
    expect_ok(kit.device.table().stream_synchronize(stream.handle, error), error, "stream_synchronize");
    expect_bytes(want, download(kit, read_at, bytes), what);
  };
  for (const std::uint32_t operation : {TENON_COLLECTIVE_SUM, TENON_COLLECTIVE_MEAN, TENON_COLLECTIVE_MAX}) {
    check("all_reduce of one rank", result.address, [&](tenon_error* e) {
      return block.all_reduce(alone.handle, stream.handle, TENON_DTYPE_F32, operation, source.address, result.address, count, e);
    });
    check("reduce_scatter of one rank", result.address, [&](tenon_error* e) {
      return block.reduce_scatter(alone.handle, stream.handle, TENON_DTYPE_F32, operation, source.address, result.address, count, e);
    });
  }
  check("broadcast of one rank", source.address,
        [&](tenon_error* e) { return block.broadcast(alone.handle, stream.handle, TENON_DTYPE_F32, source.address, count, 0, e); });
  check("all_gather of one rank", result.address, [&](tenon_error* e) {
    return block.all_gather(alone.handle, stream.handle, TENON_DTYPE_F32, source.address, result.address, count, e);
  });
}

// ---------------------------------------------------------------- foreign streams

void foreign_stream(Kit& kit) {
  const tenon_foreign_stream_table& block = block_of(kit.device.table().foreign_stream, "foreign_stream");
  const tenon_backend_table& table = kit.device.table();
  const Stream own(kit);
  ErrorText error;
  void* native = nullptr;
  const tenon_status status = block.native(own.handle, &native, error);
  if (status == TENON_UNSUPPORTED) throw NotRun("this device's streams have no vendor's handle: " + error.text());
  expect_ok(status, error, "foreign_stream native");
  const Memory memory(kit, 4096);
  const auto fill = [&](tenon_stream* stream, std::uint8_t value) {
    expect_ok(table.fill(kit.device.handle(), memory.address, 4096, value, stream, error), error, "fill");
    expect_ok(table.stream_synchronize(stream, error), error, "stream_synchronize");
    expect_bytes(std::vector<unsigned char>(4096, value), download(kit, memory.address, 4096), "filled on a stream and its import");
  };
  {
    tenon_stream* handle = nullptr;
    expect_ok(block.import(kit.device.handle(), native, &handle, error), error, "foreign_stream import");
    if (handle == nullptr) fail("foreign_stream import returned OK and left its out-parameter NULL");
    const Stream imported(kit, handle);
    fill(imported.handle, 1);
    void* same = nullptr;
    expect_ok(block.native(imported.handle, &same, error), error, "foreign_stream native of an imported stream");
    if (same != native) fail("an imported stream says that it is another one of the vendor's");
  }
  fill(own.handle, 2);  // destroying the import leaves the vendor's stream alive
}

// ---------------------------------------------------------------- the host's services

/// Measured choices come back from the host; what comes back broken is measured again.
void autotune(Kit& kit) {
  require_ops(kit, {TENON_OP_MatMul});
  const Product product(TENON_VALUE_INPUT);
  const Device device(Beside{kit.device});
  const auto run = [&](const char* when) {
    const Plan plan(device, product.net);
    expect_ready(plan);
    product.expect(plan.run(), when);
  };
  run("a plan made with nothing measured");
  const auto kept = device.host().choices();
  run("a plan made with what was measured before");
  if (kept.empty()) throw NotRun("the backend keeps no measured choices with the host");
  for (const auto& [key, value] : kept) {
    if (key.empty() || value.empty()) fail(fmt::format("autotune_put of {} bytes under the key '{}'", value.size(), key));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{300}, std::size_t{5000}}) {
    auto broken = kept;
    for (auto& [key, value] : broken) value = pattern(size, size);
    device.host().set_choices(broken);
    run("a plan made with broken measurements");
  }
}

}  // namespace

std::vector<Case> core_block_cases() {
  return core_cases({
      {"pack/shared", packed_operands},
      {"profile/records", profile},
      {"collectives/alone", collectives},
      {"foreign_stream/lent", foreign_stream},
      {"host/autotune", autotune},
  });
}

}  // namespace tenon::conformance
