// SPDX-License-Identifier: Apache-2.0
// Device memory: limits, the pool, error messages, and leaks.
#include "testing.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "core/log.h"
#include "core/memory_pool.h"
#include "extra_device.h"
#include "temporary_folder.h"

namespace tenon::test {
namespace {

constexpr std::int64_t mebi = 1 << 20;

Tensor bytes_on(const Device& device, std::int64_t count) {
  return device.empty(DType::u8, {count});
}

/// A pool over made-up addresses.
struct PoolTest {
  std::uint64_t next = 1 << 20;
  std::uint64_t taken = 0, blocks = 0;
  MemoryPool pool{[this](std::uint64_t size) {
                    const MemoryPool::Block block{next, size, nullptr};
                    next += size;
                    taken += size;
                    ++blocks;
                    return block;
                  },
                  [this](const MemoryPool::Block& block) {
                    taken -= block.size_bytes;
                    --blocks;
                  }};
};

TEST_CASE("pool: a freed piece is reused, and adjacent pieces merge") {
  PoolTest test;
  CHECK(test.pool.reuse(1) == 0);
  test.pool.grow(4096);
  const std::uint64_t a = test.pool.reuse(1000), b = test.pool.reuse(1000), c = test.pool.reuse(1000);
  CHECK(b == a + 1024);
  CHECK(test.pool.used_size_bytes() == 3 * 1024);
  CHECK(test.pool.reuse(2048) == 0);
  test.pool.release(a);
  test.pool.release(c);
  CHECK(test.pool.largest_free_bytes() == 2048);
  test.pool.release(b);
  CHECK(test.pool.largest_free_bytes() == 4096);
  CHECK(test.pool.reuse(4096) == a);
  test.pool.trim();
  CHECK(test.blocks == 1);  // in use
  test.pool.release(a);
  test.pool.trim();
  CHECK(test.blocks == 0);
  CHECK(test.pool.reserved_size_bytes() == 0);
}

TEST_CASE("pool: adjacent blocks are not merged") {
  PoolTest test;
  test.pool.grow(1024);
  test.pool.grow(1024);
  const std::uint64_t a = test.pool.reuse(1024), b = test.pool.reuse(1024);
  test.pool.release(a);
  test.pool.release(b);
  CHECK(test.pool.largest_free_bytes() == 1024);
  test.pool.trim();
  CHECK(test.taken == 0);
}

TEST_CASE("pool: in any order pieces never overlap and all are returned") {
  PoolTest test;
  std::mt19937 random(5);
  std::map<std::uint64_t, std::uint64_t> held;  // address -> size
  std::uint64_t used = 0;
  for (int i = 0; i < 20000; ++i) {
    if (held.empty() || random() % 2 == 0) {
      const std::uint64_t size = random() % 5000;
      std::uint64_t address = test.pool.reuse(size);
      if (address == 0) {
        test.pool.grow(test.pool.rounded(size) * (1 + random() % 4));
        address = test.pool.reuse(size);
      }
      REQUIRE(address != 0);
      CHECK(address % MemoryPool::min_alignment == 0);
      const auto next = held.lower_bound(address);
      if (next != held.end()) REQUIRE(address + size <= next->first);
      if (next != held.begin()) REQUIRE(std::prev(next)->first + std::prev(next)->second <= address);
      held[address] = size;
      used += test.pool.rounded(size);
    } else {
      auto victim = held.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % held.size()));
      used -= test.pool.rounded(victim->second);
      test.pool.release(victim->first);
      held.erase(victim);
    }
    REQUIRE(test.pool.used_size_bytes() == used);
  }
  for (const auto& entry : held) test.pool.release(entry.first);
  test.pool.trim();
  CHECK(test.taken == 0);
}

TEST_CASE("memory: exceeding a limit of 64 MiB is an error with sizes and advice, and the run continues") {
  for (const bool pool : {true, false}) {
    for (const char* name : {"reference:0", "openblas:0"}) {
      Config config = test_config(name);
      apply_override(config, "memory.limit_mb", "64", {Origin::Kind::command_line, "--set memory.limit_mb=64"});
      config.memory.pool = pool;
      const Context context(config);
      const Device device = context.default_device();
      const Tensor held = bytes_on(device, 40 * mebi);
      try {
        bytes_on(device, 30 * mebi);
        FAIL("70 MiB fit under a limit of 64");
      } catch (const Error& error) {
        CHECK(error.status() == Status::out_of_memory);
        const std::string text = error.what();
        CHECK(contains(text, std::string("device '") + name + "': out of memory: requested 31457280 bytes, 25165824 of 67108864 are free"));
        CHECK(contains(text, "41943040 are in use, peak 41943040"));
        CHECK(contains(text, "memory.limit_mb: 64 MiB (--set memory.limit_mb=64)"));
        CHECK(contains(text, "Raise the limit, take a smaller batch or model"));
      }
      CHECK(bytes_on(device, 20 * mebi).defined());
      CHECK(floats(context.apply(TENON_OP_Neg, {Tensor::of<float>({1, 2}, {2})})[0]) == std::vector<float>{-1, -2});
      CHECK(device.memory().limit_size_bytes == 64 * mebi);
    }
  }
}

TEST_CASE("memory: a program that does not fit is rejected; a smaller one runs") {
  Config config = test_config("openblas:0");
  config.memory.limit_mb = 64;
  const Context context(config);
  const auto run = [&](std::int64_t n) {
    Graph graph;
    const Value x = graph.input("x", DType::f32, {n});
    graph.output("y", ops::reduce_sum(ops::exp(x) + x));
    graph.output("z", x * x);
    Program program(context, graph);
    return floats(program.run({Tensor::zeros(DType::f32, {n})})[0])[0];
  };
  CHECK_ERROR_CONTAINS("out of memory", run(32 * mebi));
  CHECK(context.default_device().live_size_bytes() == 0);
  CHECK(run(1000) == 1000);
}

TEST_CASE("memory: each virtual device has its own limit") {
  Config config = test_config();
  config.backends.use = {"reference"};
  config.memory.limit_mb = 8;
  config.virtual_devices = {{"reference:0", 2, 4}};
  const Context context(config);
  const Device a = context.device("reference:0"), b = context.device("reference:1");
  const Tensor on_a = bytes_on(a, 4 * mebi), on_b = bytes_on(b, 3 * mebi);
  CHECK_ERROR_CONTAINS("virtual: limit_mb: 4 MiB", bytes_on(a, 1));
  CHECK(bytes_on(b, mebi / 2).defined());
  CHECK(a.memory().live_size_bytes == 4 * mebi);
}

TEST_CASE("memory: contexts of one process share a device's limit") {
  Config config = test_config();
  config.memory.limit_mb = 16;
  const Context first(config), second(config);
  const Device device = second.default_device();
  {
    const Device other = first.default_device();
    const Tensor held = bytes_on(other, 12 * mebi);
    CHECK_ERROR_CONTAINS("4194304 of 16777216 are free", bytes_on(device, 8 * mebi));
  }
  CHECK(bytes_on(device, 8 * mebi).defined());  // the other context's device is closed
}

TEST_CASE("memory: growth false allocates at the start all but an eighth, which plans may need, and keeps it") {
  Config config = test_config();
  config.memory.limit_mb = 8;
  config.memory.growth = false;
  const Context context(config);
  const Device device = context.default_device();
  CHECK(device.memory().reserved_size_bytes == 7 * mebi);
  CHECK(device.memory().live_size_bytes == 0);
  for (int i = 0; i < 10; ++i) CHECK(bytes_on(device, 6 * mebi).defined());
  device.trim();
  CHECK(device.memory().reserved_size_bytes == 7 * mebi);
  CHECK(device.memory().device_allocations == 1);
  CHECK_ERROR_CONTAINS("out of memory", bytes_on(device, 9 * mebi));
}

TEST_CASE("memory: the pool keeps freed memory until trim; without a pool nothing is kept") {
  Config config = test_config();
  {
    const Context context(config);
    const Device device = context.default_device();
    for (int i = 0; i < 100; ++i) CHECK(bytes_on(device, 3 * mebi).defined());
    CHECK(device.memory().allocations == 100);
    CHECK(device.memory().device_allocations == 1);
    CHECK(device.memory().reserved_size_bytes == 3 * mebi);
    device.trim();
    CHECK(device.memory().reserved_size_bytes == 0);
    CHECK(device.peak_size_bytes() == 3 * mebi);
  }
  config.memory.pool = false;
  const Context context(config);
  const Device device = context.default_device();
  for (int i = 0; i < 100; ++i) CHECK(bytes_on(device, 3 * mebi).defined());
  CHECK(device.memory().device_allocations == 100);
  CHECK(device.memory().reserved_size_bytes == 0);
}

TEST_CASE("memory: cached memory is released for a request that needs it") {
  Config config = test_config();
  config.memory.limit_mb = 16;
  const Context context(config);
  const Device device = context.default_device();
  CHECK(bytes_on(device, 10 * mebi).defined());
  CHECK(bytes_on(device, 12 * mebi).defined());  // the cached 10 are released first
}

TEST_CASE_FIXTURE(OnOpenblas, "memory: the second thousand steps of a program allocate nothing from the device") {
  Graph graph;
  const Value x = graph.input("x", DType::f32, {64, 32});
  const Value w = graph.parameter("w", DType::f32, {32, 32});
  const Value loss = ops::reduce_mean(ops::relu(ops::matmul(x, w)));
  graph.output("loss", loss);
  graph.update(w, w - ops::mul(gradients(loss, {w})[0], 0.1));
  Program program(context, graph);
  program.parameters()->set("w", Tensor::full(DType::f32, {32, 32}, 0.25));
  const Tensor input = Tensor::full(DType::f32, {64, 32}, 0.5);
  program.run({input});
  program.run({input});
  const MemoryUse before = context.default_device().memory();
  for (int i = 0; i < 1000; ++i) program.run({input});
  const MemoryUse after = context.default_device().memory();
  CHECK(after.device_allocations == before.device_allocations);
  CHECK(after.allocations == before.allocations);
  CHECK(after.live_size_bytes == before.live_size_bytes);
}

/// A device whose memory the host cannot reach.
struct FarBackend : WrappedBackend<FarBackend> {
  static constexpr const char* name = "far";
  static void alter(tenon_backend_table&) {}
};

TEST_CASE("memory: a plan is what the program allocates, inputs on other devices, prologues and frozen weights included") {
  for (const std::string name : {"openblas:0", "reference:0", "far:0"}) {
    CAPTURE(name);
    const Context context(test_config());
    FarBackend::add_to(context);
    const Device device = context.device(name);
    Graph graph;
    const Value x = graph.input("x", DType::f32, {8, 300}), w = graph.parameter("w", DType::f32, {300, 40});
    graph.output("y", ops::relu(ops::matmul(x, ops::exp(w) * w)));  // what depends on w alone runs once
    graph.output("w", w);
    const auto parameters = std::make_shared<ParameterStore>();
    const ProgramOptions options{.device = name, .parameters = parameters};
    const std::vector<MemoryPlan> planned = Program::plan_memory(context, graph, options);
    CHECK(device.memory().allocations == 0);
    CHECK_FALSE(parameters->has("w"));
    REQUIRE(planned.size() == 1);
    CHECK(planned[0].device == name);
    CHECK(planned[0].parameters == std::map<std::string, std::uint64_t>{{"w", 48000}});
    CHECK(planned[0].inputs_size_bytes == (name == "far:0" ? 9600 : 0));
    CHECK(planned[0].packed_size_bytes >= 48000);
    const auto run = [&](bool freeze) {
      ProgramOptions mine = options;
      mine.freeze = freeze;
      Program program(context, graph, mine);
      if (!freeze) parameters->set("w", Tensor::full(DType::f32, {300, 40}, 0.5));
      program.run({Tensor::full(DType::f32, {8, 300}, 0.5)});
      REQUIRE(program.memory().size() == 1);
      CHECK(device.live_size_bytes() == 48000 + program.memory()[0].own_size_bytes());
      return program.memory()[0];
    };
    const MemoryPlan made = run(false);
    CHECK(made.parameters == planned[0].parameters);
    CHECK(made.own_size_bytes() == planned[0].own_size_bytes());
    const MemoryPlan frozen = run(true);
    CHECK(frozen.parameters.empty());
    ProgramOptions freeze = options;
    freeze.freeze = true;
    CHECK(Program::plan_memory(context, graph, freeze)[0].peak_size_bytes() == frozen.peak_size_bytes());
  }
}

TEST_CASE_FIXTURE(InFolder, "memory: closing a device logs the memory in use; a tensor that outlives its context is reported") {
  const std::string path = folder.file("log.txt");
  Tensor survivor;
  {
    Config config = test_config();
    config.logging.level = LogLevel::debug;
    config.logging.file = path;
    const Context context(config);
    survivor = bytes_on(context.default_device(), 4096);
  }
  const auto text = [&] {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  CHECK(contains(text(), "device 'reference:0': 4096 bytes outlive their context, in tensors or programs"));
  CHECK_FALSE(contains(text(), "never freed"));
  survivor = {};
  CHECK(contains(text(), "device 'reference:0': 1 request in 1 device allocation, peak 4096 bytes; 0 bytes were never freed"));
  CHECK_FALSE(contains(text(), "while its backend reports"));
  log::set_file("");
  log::set_level(TENON_LOG_ERROR + 1);
}

TEST_CASE("memory: zeros and parameters of one value are filled in by the device, not copied to it") {
  const Context context(test_config());
  FarBackend::add_to(context);
  for (const char* const name : {"openblas:0", "far:0"}) {
    CAPTURE(name);
    const Device device = context.device(name);
    Tensor::full(DType::f32, {1000}, 3.0).to(device);  // what the pool gives out again is not zero
    const std::uint64_t copies = context.profile().host_to_device.copies;
    const Tensor zeros = device.zeros(DType::f32, {1000});
    CHECK((zeros.storage()->device == device.state()));
    ParameterStore store;
    store.create("w", device, DType::c64, {10});
    store.fill("w", 0);
    CHECK(store.unset().empty());
    CHECK(context.profile().host_to_device.copies == copies);
    CHECK(equal(zeros, Tensor::zeros(DType::f32, {1000})));
    CHECK(equal(store.get("w"), Tensor::zeros(DType::c64, {10})));
    CHECK(device.zeros(DType::i8, {0, 3}).count() == 0);
    CHECK_ERROR("there is no parameter 'v'", store.fill("v", 0));
  }
}

TEST_CASE("memory: a device gets no request above its largest allocation, neither for small tensors nor at the start") {
  for (const bool growth : {true, false}) {
    Config config = test_config();
    config.memory.limit_mb = 8;
    config.memory.growth = growth;
    const Context context(config);
    FarBackend::add_to(context);
    context.state()->entries.back().info.max_allocation_size_bytes = mebi + 100;
    const Device device = context.device("far:0");
    CHECK(device.info().max_allocation_size_bytes == mebi + 100);
    CHECK(device.memory().device_allocations == (growth ? 0 : 7));
    CHECK(bytes_on(device, 1000).defined());
    CHECK(device.memory().reserved_size_bytes == (growth ? mebi : 7 * mebi));
    CHECK(bytes_on(device, mebi).defined());
    if (!growth) continue;
    CHECK_ERROR_CONTAINS(
        "device 'far:0': expected at most 1048676 bytes in one allocation, the most that the device takes "
        "(max_allocation_size_bytes), got 2097152",
        bytes_on(device, 2 * mebi));
    CHECK_ERROR_CONTAINS("device 'far:0': out of memory: requested 2097152 bytes", bytes_on(device, 2 * mebi));
    CHECK_ERROR_CONTAINS("(max_allocation_size_bytes)", device.empty_pinned(DType::u8, {2 * mebi}));
  }
}

TEST_CASE("memory: a largest allocation that is too small to use, or more than there is, is the plugin's error") {
  for (const std::uint64_t max : {std::uint64_t{100}, ~std::uint64_t{0}}) {
    const Context context(test_config());
    FarBackend::add_to(context);
    context.state()->entries.back().info.memory_size_bytes = 1u << 30;
    context.state()->entries.back().info.max_allocation_size_bytes = max;
    CHECK_ERROR(
        "device 'far:0': expected max_allocation_size_bytes of 0, or at least 256 bytes and at most 1073741824, the size of its "
        "memory, got " +
            std::to_string(max) + "; report this to the plugin's vendor",
        context.device("far:0"));
  }
}

TEST_CASE("memory: contradictory keys are rejected, an ineffective key is logged") {
  const auto refusal = [](const std::vector<ConfigOverride>& keys) {
    ConfigSources sources;
    sources.api = keys;
    sources.environment = nullptr;
    return message_of([&] { resolve_config(sources); });
  };
  CHECK(contains(refusal({{"memory.growth", "false"}}), "memory.limit_mb"));
  CHECK(contains(refusal({{"memory.growth", "false"}, {"memory.limit_mb", "8"}, {"memory.pool", "false"}}),
                 "key 'memory.pool': false returns each freed block"));
  const TemporaryFolder folder;
  Config config = test_config();
  config.logging.level = LogLevel::warning;
  config.logging.file = folder.file("log.txt");
  config.memory.limit_mb = std::int64_t{1} << 40;
  const Context context(config);
  std::ifstream in(config.logging.file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  CHECK(contains(text, "device 'reference:0': a limit of 1099511627776 MiB is more than its "));
  log::set_file("");
}

}  // namespace
TEST_CASE_FIXTURE(OnOpenblas, "memory: an immediate op holds only its results") {
  const Device device = context.default_device();
  const Tensor x = Tensor::full(DType::f32, {256, 1024}, 1.0);
  const std::uint64_t before = device.live_size_bytes();
  {
    const std::vector<Tensor> made = context.apply(TENON_OP_Neg, {x});
    CHECK(device.live_size_bytes() - before < 1.5 * static_cast<double>(x.size_bytes()));
  }
  CHECK(device.live_size_bytes() - before < static_cast<std::uint64_t>(x.size_bytes()) / 2);
}

}  // namespace tenon::test
