// SPDX-License-Identifier: Apache-2.0
// A backend of one CPU device that has one op, of its vendor, and an extension.
#include <tenon/sdk/backend.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "extension.h"
#include "kernels_run.h"

namespace tenon::example {

std::atomic<std::uint64_t>& kernels_run() {
  static std::atomic<std::uint64_t> count{0};
  return count;
}

namespace {

constexpr example_counters counters{
    .struct_size = sizeof(example_counters), .reserved = 0, .kernels_run = [] { return kernels_run().load(); }};

class ExampleBackend : public sdk::Backend {
 public:
  using Backend::Backend;
  std::uint32_t device_count() override { return 1; }
  const sdk::DeviceDescription& describe(std::uint32_t) override { return description_; }
  std::unique_ptr<sdk::Device> open(std::uint32_t) override { return std::make_unique<sdk::CpuDevice>(host); }
  const void* extension(const char* name, std::uint32_t version) override {
    return std::strcmp(name, EXAMPLE_COUNTERS_NAME) == 0 && version == EXAMPLE_COUNTERS_VERSION ? &counters : nullptr;
  }

 private:
  const sdk::DeviceDescription description_ = sdk::describe_cpu("one op of its own");
};

}  // namespace

const sdk::BackendSpec& spec();
const sdk::BackendSpec& spec() {
  static constexpr sdk::BackendSpec example{
      .name = "example",
      .version = TENON_VERSION,
      .vendor = "Example",
      .description = "the example of a backend with an op and an extension of its own",
      .requirements = nullptr,
      .priority = 10,
      .flags = 0,
      .options = {},
      .create = [](sdk::Host host) -> std::unique_ptr<sdk::Backend> { return std::make_unique<ExampleBackend>(host); },
  };
  return example;
}

}  // namespace tenon::example
