// SPDX-License-Identifier: Apache-2.0
// foreign_device.h - the reference backend as devices unlike the host: one that does not compute with f64, one that makes no large
// allocations, and one whose memory no host pointer reaches and whose operands lie at multiples of 256 bytes.
#pragma once

#include <tenon/backend.h>
#include <tenon/sdk/kernel.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "aligned_blas.h"
#include "disguised_backend.h"

namespace tenon::test {

/// Refuses every graph with a value of f64, so that what the core sends it by mistake fails.
struct WithoutF64 : Disguise<WithoutF64> {
  static constexpr const char *file = "reference", *name = "without_f64";
  static constexpr std::uint64_t missing = TENON_DTYPE_BIT(TENON_DTYPE_F64) | TENON_DTYPE_BIT(TENON_DTYPE_C128);
  static inline std::vector<tenon_capability> capabilities;

  static void describe(tenon_backend_info& info) {
    const std::span all(info.capabilities, info.capability_count);
    capabilities.assign(all.begin(), all.end());
    for (tenon_capability& c : capabilities) c.dtypes &= ~missing;
    info.capabilities = capabilities.data();
  }
  static tenon_status device_info(tenon_backend* backend, std::uint32_t index, tenon_device_info* out_info, tenon_error* error) {
    const tenon_status status = real->device_info(backend, index, out_info, error);
    if (status == TENON_OK && TENON_HAS(out_info, tenon_device_info, dtypes)) out_info->dtypes &= ~missing;
    return status;
  }
  static bool has_missing(const tenon_graph& graph) {
    for (std::uint32_t i = 0; i < graph.value_count; ++i) {
      const auto* const value =
          reinterpret_cast<const tenon_value*>(reinterpret_cast<const char*>(graph.values) + std::size_t{i} * graph.value_stride);
      if (value->desc.dtype < TENON_DTYPE_COUNT && (missing & TENON_DTYPE_BIT(value->desc.dtype)) != 0) return true;
    }
    return false;
  }
  static tenon_status plan_create(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                                  tenon_error* error) {
    tenon_plan* plan = nullptr;
    const tenon_status status = real->plan_create(device, graph, options, &plan, error);  // refuses malformed graphs
    if (status != TENON_OK) return status;
    if (has_missing(*graph)) {
      real->plan_destroy(plan);
      return say(error, TENON_UNSUPPORTED, "a value of f64 was sent to a device that does not compute with it");
    }
    *out_plan = plan;
    return TENON_OK;
  }
  static void alter(tenon_backend_table& table) {
    static tenon_blas_table blas;
    blas = *real->blas;
#define TENON_BLAS(id, routine, ...) blas.routine##_dtypes &= ~missing;
#include <tenon/blas.def>
#undef TENON_BLAS
    table.device_info = device_info;
    table.plan_create = plan_create;
    table.blas = &blas;
  }
};

/// Makes no allocation of more than 1 MiB, and counts the requests for one.
struct SmallAllocations : Disguise<SmallAllocations> {
  static constexpr const char *file = "reference", *name = "small_allocations";
  static constexpr std::uint64_t largest = 1 << 20;
  static inline std::atomic<int> refused{0};

  static tenon_status device_info(tenon_backend* backend, std::uint32_t index, tenon_device_info* out_info, tenon_error* error) {
    const tenon_status status = real->device_info(backend, index, out_info, error);
    if (status == TENON_OK && TENON_HAS(out_info, tenon_device_info, max_allocation_size_bytes))
      out_info->max_allocation_size_bytes = largest;
    return status;
  }
  static tenon_status allocate(tenon_device* device, const tenon_memory_request* request, tenon_memory_result* out_result,
                               tenon_error* error) {
    if (request->size_bytes <= largest) return real->memory_allocate(device, request, out_result, error);
    ++refused;
    return say(error, TENON_OUT_OF_MEMORY, "memory_allocate: expected at most 1 MiB");
  }
  static void alter(tenon_backend_table& table) {
    table.device_info = device_info;
    table.memory_allocate = allocate;
  }
};

/// Device addresses are host addresses moved to where no memory is, so that a use by the host crashes.
struct Aligned256 : Disguise<Aligned256> {
  static constexpr const char *file = "reference", *name = "aligned_256";
  static constexpr std::uint64_t alignment = 256, apart = std::uint64_t{1} << 62;

  static bool is_here(std::uint64_t address) { return address >= apart; }
  static std::uint64_t moved(std::uint64_t address) { return is_here(address) ? address - apart : address; }
  static bool wraps(std::uint64_t address, std::uint64_t size_bytes) { return address + size_bytes < address; }

  static tenon_status device_info(tenon_backend* backend, std::uint32_t index, tenon_device_info* out_info, tenon_error* error) {
    const tenon_status status = real->device_info(backend, index, out_info, error);
    if (status != TENON_OK) return status;
    if (TENON_HAS(out_info, tenon_device_info, flags)) out_info->flags &= ~std::uint32_t{TENON_DEVICE_HOST_ADDRESSABLE};
    if (TENON_HAS(out_info, tenon_device_info, alignment_bytes)) out_info->alignment_bytes = alignment;
    if (TENON_HAS(out_info, tenon_device_info, operand_alignment_bytes)) out_info->operand_alignment_bytes = alignment;
    return TENON_OK;
  }
  static tenon_status allocate(tenon_device* device, const tenon_memory_request* given, tenon_memory_result* out_result,
                               tenon_error* error) {
    tenon_memory_request request = *given;
    const bool here = request.kind == TENON_MEMORY_DEVICE && !wraps(request.size_bytes, alignment);
    if (here) {
      request.size_bytes += alignment;
      if (request.alignment_bytes <= alignment) request.alignment_bytes = 0;
    }
    const tenon_status status = real->memory_allocate(device, &request, out_result, error);
    if (status != TENON_OK || !here) return status;
    out_result->address = (out_result->address + alignment - 1) / alignment * alignment + apart;
    if (TENON_HAS(out_result, tenon_memory_result, host)) out_result->host = nullptr;
    return status;
  }
  static tenon_status import(tenon_device* device, const tenon_memory_import* given, tenon_memory_result* out_result, tenon_error* error) {
    const std::uint32_t terms = given->terms;
    if (terms == TENON_IMPORT_BORROW_READ_ONLY || terms == TENON_IMPORT_BORROW_READ_WRITE)
      return say(error, TENON_UNSUPPORTED, "this device does not read host memory in place: import a copy");
    if (terms != TENON_IMPORT_COPY && terms != TENON_IMPORT_HOLD) return real->memory_import(device, given, out_result, error);
    tenon_memory_request request{.struct_size = sizeof request, .kind = TENON_MEMORY_DEVICE, .size_bytes = given->size_bytes};
    request.needs = given->needs;
    const tenon_status status = allocate(device, &request, out_result, error);
    if (status == TENON_OK && given->size_bytes > 0)
      std::memcpy(reinterpret_cast<void*>(moved(out_result->address)), given->host, given->size_bytes);
    return status;
  }
  static tenon_status copy(tenon_device* device, const tenon_copy* given, tenon_stream* stream, tenon_error* error) {
    tenon_copy own = *given;
    const bool known = own.direction <= TENON_COPY_DEVICE_TO_DEVICE && own.size_bytes > 0;
    if (known && !wraps(own.source, own.size_bytes) && !wraps(own.destination, own.size_bytes)) {
      const bool from_here = own.direction != TENON_COPY_HOST_TO_DEVICE, to_here = own.direction != TENON_COPY_DEVICE_TO_HOST;
      if (is_here(own.source) != from_here || is_here(own.destination) != to_here)
        return say(error, TENON_INVALID_ARGUMENT, "copy: an address is not where the direction says");
      own.source = moved(own.source);
      own.destination = moved(own.destination);
    }
    return real->copy(device, &own, stream, error);
  }
  static tenon_status fill(tenon_device* device, std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, tenon_stream* stream,
                           tenon_error* error) {
    return real->fill(device, wraps(address, size_bytes) ? address : moved(address), size_bytes, value, stream, error);
  }
  /// By binding: bytes from the address that is bound to the operand's first byte, 0 or less.
  using FirstBytes = std::vector<std::int64_t>;
  static inline std::map<const tenon_plan*, FirstBytes> first_bytes;
  static inline std::mutex mutex;

  static FirstBytes first_bytes_of(const tenon_graph& graph) {
    FirstBytes result(graph.binding_count, 0);
    for (std::uint32_t v = 0; v < graph.value_count; ++v) {
      const auto& value =
          *reinterpret_cast<const tenon_value*>(reinterpret_cast<const char*>(graph.values) + std::size_t{v} * graph.value_stride);
      for (std::uint32_t d = 0; value.binding < result.size() && value.desc.strides != nullptr && d < value.desc.rank; ++d) {
        const std::int64_t way = (value.desc.shape[d] - 1) * value.desc.strides[d] * sdk::size_of(value.desc.dtype);
        if (way < 0) result[value.binding] += way;
      }
    }
    return result;
  }
  static tenon_status plan_create(tenon_device* device, const tenon_graph* graph, const tenon_plan_options* options, tenon_plan** out_plan,
                                  tenon_error* error) {
    const tenon_status status = real->plan_create(device, graph, options, out_plan, error);
    if (status != TENON_OK) return status;
    const std::lock_guard lock(mutex);
    first_bytes[*out_plan] = first_bytes_of(*graph);
    return TENON_OK;
  }
  static void plan_destroy(tenon_plan* plan) {
    {
      const std::lock_guard lock(mutex);
      first_bytes.erase(plan);
    }
    real->plan_destroy(plan);
  }
  static tenon_status plan_execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                                   tenon_error* error) {
    if (bindings->addresses == nullptr) return real->plan_execute(plan, bindings, moved(workspace), stream, error);
    std::vector<std::uint64_t> addresses(bindings->addresses, bindings->addresses + bindings->address_count);
    FirstBytes first;
    {
      const std::lock_guard lock(mutex);
      first = first_bytes[plan];
    }
    first.resize(addresses.size());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const std::uint64_t begin = addresses[i] + static_cast<std::uint64_t>(first[i]);
      if (addresses[i] != 0 && (!is_here(begin) || begin % alignment != 0))
        return say(error, TENON_INVALID_ARGUMENT,
                   "plan_execute: an operand does not begin at a multiple of 256 bytes of this device's memory");
      addresses[i] = moved(addresses[i]);
    }
    tenon_bindings own = *bindings;
    own.addresses = addresses.data();
    return real->plan_execute(plan, &own, moved(workspace), stream, error);
  }
  static void alter(tenon_backend_table& table) {
    table.device_info = device_info;
    table.memory_allocate = allocate;
    table.memory_import = import;
    table.copy = copy;
    table.fill = fill;
    table.plan_create = plan_create;
    table.plan_destroy = plan_destroy;
    table.plan_execute = plan_execute;
    table.blas = AlignedBlas<Aligned256>::table_over(real->blas);
  }
};

}  // namespace tenon::test
