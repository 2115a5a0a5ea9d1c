// SPDX-License-Identifier: Apache-2.0
// cuda_host.h - a host of the cuda backend on the emulation: its options, what it logs, the choices that it keeps.
#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "backends/cuda/device/device.h"

namespace tenon::cuda {

/// A host with options that stores log lines and choices.
struct TestHost {
  std::map<std::string, std::string> options{{"libraries", TENON_EMULATED_LIBRARIES "/libraries"}};
  std::map<std::string, std::string> kept;
  std::vector<std::string> warnings, lines;
  tenon_host table{};

  TestHost() {
    table.struct_size = sizeof table;
    table.context = reinterpret_cast<tenon_host_context*>(this);
    table.log = [](tenon_host_context* context, std::uint32_t level, const char* text) {
      (level == TENON_LOG_WARNING ? of(context).warnings : of(context).lines).emplace_back(text);
    };
    table.option = [](tenon_host_context* context, const char* option) -> const char* {
      const auto found = of(context).options.find(option);
      return found == of(context).options.end() ? nullptr : found->second.c_str();
    };
    table.autotune_get = [](tenon_host_context* context, const char* key, void* value, std::uint64_t capacity) -> std::uint64_t {
      const auto found = of(context).kept.find(key);
      if (found == of(context).kept.end()) return 0;
      found->second.copy(static_cast<char*>(value), capacity);
      return found->second.size();
    };
    table.autotune_put = [](tenon_host_context* context, const char* key, const void* value, std::uint64_t size) {
      of(context).kept[key] = {static_cast<const char*>(value), static_cast<std::size_t>(size)};
    };
  }
  static TestHost& of(tenon_host_context* context) { return *reinterpret_cast<TestHost*>(context); }
};

/// An opened device with such a host.
struct Bench {
  Bench() = default;
  Bench(const char* option, const char* value) { host.options[option] = value; }
  TestHost host;
  Device device{sdk::Host(&host.table), 0};
};

/// Sets the engines of the emulated cuDNN during its lifetime.
class Engines {
 public:
  explicit Engines(const char* list) { ::setenv("TENON_CUDNN_EMULATION_ENGINES", list, 1); }
  ~Engines() { ::unsetenv("TENON_CUDNN_EMULATION_ENGINES"); }
};

}  // namespace tenon::cuda
