// SPDX-License-Identifier: Apache-2.0
// The mutant's query and lifecycle: those of the unmodified backend, a file next to the plugin, under another name.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>

#include "mutant.h"
#include "system.h"

namespace tenon::mutants {
namespace {

/// A copy of the file, so that it is a different library from the oracle in the same process.
tenon_backend_query_fn unmodified_query() {
  static const tenon_backend_query_fn query = query_of_neighbour(TENON_UNMODIFIED_BACKEND);
  return query;
}

const tenon_backend_table* unmodified_table = nullptr;
tenon_status (*unmodified_create)(const tenon_host*, tenon_backend**, const tenon_backend_table**, tenon_error*) = nullptr;

std::mutex hosts_mutex;
std::map<tenon_backend*, const tenon_host*> hosts;
std::map<tenon_device*, const tenon_host*> device_hosts;

const tenon_host* host_of_backend(tenon_backend* backend) {
  const std::lock_guard lock(hosts_mutex);
  return hosts[backend];
}

}  // namespace

const tenon_backend_table& real() {
  return *unmodified_table;
}

const tenon_host* host_of(tenon_device* device) {
  const std::lock_guard lock(hosts_mutex);
  return device_hosts[device];
}

tenon_status say(tenon_error* error, tenon_status status, const char* text) {
  if (error != nullptr && error->text != nullptr && error->text_capacity > 0) std::snprintf(error->text, error->text_capacity, "%s", text);
  return status;
}

namespace {

// ---------------------------------------------------------------- lifecycle and devices

void shutdown(tenon_backend* backend) {
  misbehave(Moment::shutdown);
  if (is(Mutation::shutdown_only_once)) {
    const std::lock_guard lock(hosts_mutex);
    if (hosts.erase(backend) == 0) crash();
  }
  real().shutdown(backend);
}

void destroy(tenon_backend* backend) {
  const tenon_host* const host = host_of_backend(backend);
  real().destroy(backend);
  if (is(Mutation::leaks_backends)) host->allocate(host->context, 64, 64);
}

std::atomic<std::uint32_t> open_devices{0};

tenon_status device_count(tenon_backend* backend, std::uint32_t* out_count, tenon_error* error) {
  const tenon_status status = real().device_count(backend, out_count, error);
  if (status == TENON_OK && is(Mutation::counts_unopened_devices)) *out_count -= std::min<std::uint32_t>(*out_count, open_devices);
  return status;
}

void device_close(tenon_device* device) {
  const tenon_host* const host = host_of(device);
  real().device_close(device);
  --open_devices;
  if (is(Mutation::leaks_devices)) host->allocate(host->context, 64, 64);
}

tenon_status device_open(tenon_backend* backend, std::uint32_t index, tenon_device** out_device, tenon_error* error) {
  // The caller may pass a NULL error.
  if (is(Mutation::expects_an_error)) error->node_id = 0;
  const tenon_status status = real().device_open(backend, index, out_device, error);
  if (status != TENON_OK) {
    if (is(Mutation::wrong_error_code)) return TENON_CANCELLED;
    if (error != nullptr && error->text_capacity > 0) {
      if (is(Mutation::error_without_text)) error->text[0] = '\0';
      if (is(Mutation::error_text_without_end)) std::memset(error->text, 'x', error->text_capacity);
      if (is(Mutation::error_text_overruns)) std::strcpy(error->text, "no such device");
    }
    return status;
  }
  ++open_devices;
  const tenon_host* const host = host_of_backend(backend);
  const std::lock_guard lock(hosts_mutex);
  device_hosts[*out_device] = host;
  return status;
}

tenon_status device_info(tenon_backend* backend, std::uint32_t index, tenon_device_info* out_info, tenon_error* error) {
  tenon_device_info whole{};
  whole.struct_size = sizeof whole;
  const tenon_status status = real().device_info(backend, index, is(Mutation::writes_beyond_struct_size) ? &whole : out_info, error);
  if (status != TENON_OK) return status;
  if (is(Mutation::writes_beyond_struct_size)) {
    whole.struct_size = out_info->struct_size;
    *out_info = whole;
  }
  if (is_asynchronous()) out_info->flags &= ~static_cast<std::uint32_t>(TENON_DEVICE_INLINE_STREAMS);
  if (is(Mutation::identity_without_pairs) && TENON_HAS(out_info, tenon_device_info, identity)) out_info->identity = "uuid= GPU-1";
  if (is(Mutation::device_without_a_name) && TENON_HAS(out_info, tenon_device_info, name)) out_info->name = nullptr;
  if (is(Mutation::operands_at_48_bytes) && TENON_HAS(out_info, tenon_device_info, operand_alignment_bytes))
    out_info->operand_alignment_bytes = 48;
  if (is(Mutation::allocates_single_bytes) && TENON_HAS(out_info, tenon_device_info, max_allocation_size_bytes))
    out_info->max_allocation_size_bytes = 1;
  return status;
}

tenon_backend_table modified(tenon_backend_table table) {
  table.shutdown = shutdown;
  table.destroy = destroy;
  table.device_count = device_count;
  table.device_info = device_info;
  table.device_open = device_open;
  table.device_close = device_close;
  // These blocks expect the unmodified plans and streams.
  table.capture = nullptr;
  table.pack = nullptr;
  table.profile = nullptr;
  spoil_memory(table);
  spoil_streams(table);
  spoil_captures(table);
  spoil_plans(table);
  spoil_packing(table);
  spoil_collectives(table);
  spoil_blas(table);
  spoil_extension(table);
  if (is(Mutation::lies_in_struct_size)) table.struct_size = 64;
  if (is(Mutation::leaves_a_slot_empty)) table.event_query = nullptr;
  return table;
}

tenon_status create(const tenon_host* host, tenon_backend** out_backend, const tenon_backend_table** out_table, tenon_error* error) {
  misbehave(Moment::create);
  if (is(Mutation::only_one_backend)) {
    const std::lock_guard lock(hosts_mutex);
    if (!hosts.empty()) return say(error, TENON_UNSUPPORTED, "there is one already");
  }
  const tenon_status status = unmodified_create(host, out_backend, &unmodified_table, error);
  if (status != TENON_OK) return status;
  if (is(Mutation::leaks_host_memory)) host->allocate(host->context, 64, 64);
  static const tenon_backend_table table = modified(*unmodified_table);
  *out_table = &table;
  const std::lock_guard lock(hosts_mutex);
  hosts[*out_backend] = host;
  return status;
}

/// The whole answer of the query, with the changes of the mutation.
tenon_status answer_whole(const tenon_host_info* host, tenon_backend_info* out_info) {
  const tenon_backend_query_fn ask = unmodified_query();
  if (ask == nullptr) return TENON_INTERNAL;
  tenon_host_info altered_host = *host;
  if (is(Mutation::accepts_any_host)) {
    altered_host.abi_major = TENON_ABI_MAJOR;
    altered_host.abi_minor_lowest = altered_host.abi_minor_highest = TENON_ABI_MINOR;
  }
  const tenon_status status = ask(&altered_host, out_info);
  if (status != TENON_OK) return status;
  unmodified_create = out_info->create;
  out_info->create = create;
  out_info->name = mutation_name;
  out_info->description = "the reference backend with one defect";
  out_info->flags &= ~static_cast<std::uint32_t>(TENON_BACKEND_ORACLE);
  out_info->priority = 1000;
  declare_vendor_ops(*out_info);
  if (is(Mutation::wrong_op_digest)) {
    static const std::vector<tenon_op_digest> digests = [&] {
      std::vector<tenon_op_digest> list(out_info->digests, out_info->digests + out_info->digest_count);
      for (tenon_op_digest& digest : list) {
        if (digest.op == TENON_OP_Relu) digest.digest ^= 1;
      }
      return list;
    }();
    out_info->digests = digests.data();
  }
  if (is(Mutation::caps_and_supports_differ) || is(Mutation::no_to_mandatory_op)) {
    static const std::vector<tenon_capability> capabilities = [&] {
      std::vector<tenon_capability> list;
      for (std::uint32_t i = 0; i < out_info->capability_count; ++i) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(out_info->capabilities) + std::size_t{i} * out_info->capability_stride;
        list.push_back(*reinterpret_cast<const tenon_capability*>(bytes));
        if (list.back().op == TENON_OP_Relu) list.back().dtypes &= ~TENON_DTYPE_BIT(TENON_DTYPE_F32);
      }
      return list;
    }();
    out_info->capabilities = capabilities.data();
    out_info->capability_stride = sizeof(tenon_capability);
  }
  return status;
}

/// As much of the answer as fits the caller's struct. Failures and structs that are too small are left to the unmodified backend.
tenon_status answer(const tenon_host_info* host, tenon_backend_info* out_info) {
  const std::uint32_t capacity = out_info->struct_size;
  tenon_backend_info whole{};
  whole.struct_size = sizeof whole;
  const tenon_status status = answer_whole(host, &whole);
  if (status != TENON_OK || capacity < sizeof whole.struct_size) {
    const tenon_backend_query_fn ask = unmodified_query();
    return ask == nullptr ? tenon_status{TENON_INTERNAL} : ask(host, out_info);
  }
  whole.struct_size = std::min<std::uint32_t>(capacity, sizeof whole);
  std::memcpy(static_cast<void*>(out_info), &whole, whole.struct_size);
  return status;
}

}  // namespace
}  // namespace tenon::mutants

extern "C" TENON_EXPORT tenon_status tenon_backend_query(const tenon_host_info* host, tenon_backend_info* out_info) {
  using namespace tenon::mutants;
  misbehave(Moment::query);
  const tenon_status status = answer(host, out_info);
  if (is(Mutation::other_answer_the_second_time)) {
    static std::int32_t calls = 0;
    out_info->priority = ++calls;
  }
  return status;
}
