// SPDX-License-Identifier: Apache-2.0
// extra_device.h - adds a device of another backend to a context, for example that of the reference backend with some slots replaced.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <tenon/tenon.h>

#include "exec/context_state.h"
#include "loader/loader.h"
#include "loader/vendor_ops.h"

namespace tenon::test {

/// Adds device NAME:0 of the backend that `query` describes. `entry`: a device whose host services and flags it has.
inline void add_device(const Context& context, const std::string& name, tenon_backend_query_fn query, exec::DeviceEntry entry) {
  exec::ContextState& state = *context.state();
  loader::Options options;
  options.registered = {{name, query}};
  options.make_host = [&](const tenon_backend_info&, std::uint32_t) { return entry.loaded->services->table(); };
  const loader::Result result = loader::load(options);
  REQUIRE(result.backends.size() == 1);
  REQUIRE_MESSAGE(result.records[0].healthy, result.records[0].text);
  entry.loaded = std::make_shared<exec::LoadedBackend>(
      exec::LoadedBackend{entry.loaded->services, result.backends[0], {name, loader::vendor_ops_of(result.backends[0]->info())}});
  entry.info.name = name + ":0";
  entry.info.backend = name;
  state.infos.push_back(entry.info);
  state.entries.push_back(std::move(entry));
  state.available.push_back({name, 0, DeviceKind::accelerator});
  state.opened.resize(state.entries.size());
}

/// A second view of a loaded backend, with slots of its own. Self has `static constexpr const char* name` and `alter`, which puts its
/// slots into a copy of the table; it may hide describe. Only one instance may exist at a time.
template <class Self>
struct WrappedBackend {
  static inline const loader::Backend* real = nullptr;

  /// Alters the result of the query.
  static void describe(tenon_backend_info&) {}

  /// Adds NAME:0, a device of the reference backend as one with separate memory and streams that return at once.
  static void add_to(const Context& context) {
    exec::ContextState& state = *context.state();
    exec::DeviceEntry entry = state.entries[state.find(parse_device_name("reference:0"))];
    real = entry.loaded->backend.get();
    entry.info.flags &= ~(TENON_DEVICE_INLINE_STREAMS | TENON_DEVICE_HOST_ADDRESSABLE);
    add_device(context, Self::name, query, entry);
  }

 private:
  static tenon_status query(const tenon_host_info*, tenon_backend_info* out_info) {
    const std::uint32_t size = out_info->struct_size;
    *out_info = real->info();
    out_info->struct_size = size;
    out_info->name = Self::name;
    out_info->create = create;
    Self::describe(*out_info);
    return TENON_OK;
  }
  static tenon_status create(const tenon_host*, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error*) {
    static tenon_backend_table table;
    table = real->table();
    table.shutdown = [](tenon_backend*) {};
    table.destroy = [](tenon_backend*) {};
    Self::alter(table);
    *out_backend = real->handle();
    *out_table = &table;
    return TENON_OK;
  }
};

}  // namespace tenon::test
