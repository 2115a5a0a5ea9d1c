// SPDX-License-Identifier: Apache-2.0
// The collectives block: every argument is checked here, so that a Group may rely on them.
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tenon/sdk/backend.h>
#include <tenon/sdk/collectives.h>
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/needs.h>

#include "guarded.h"
#include "handles.h"

struct tenon_group {
  std::unique_ptr<tenon::sdk::Group> group;
  std::uint32_t rank, size;
  std::uint64_t dtypes;  ///< that can be combined
};

namespace tenon::sdk {
namespace {

// The sizes in the first header that has them.
constexpr std::size_t request_size_v1 = offsetof(tenon_group_request, id) + sizeof(tenon_group_request::id);
constexpr std::size_t collective_size_v1 = offsetof(tenon_collective, reserved) + sizeof(tenon_collective::reserved);

[[noreturn]] void refuse(const std::string& text) {
  throw Error(TENON_INVALID_ARGUMENT, text);
}

tenon_status group_id(tenon_backend* self, tenon_group_id* out_id, tenon_error* error) {
  return guarded(error, [&] { *out_id = self->backend->make_group_id(); });
}

GroupOptions checked(const tenon_group_request* request) {
  if (request == nullptr || request->struct_size < request_size_v1) refuse("group_create: expected a request with all of its fields");
  check_needs("group_create", request->needs);
  if (request->size == 0 || request->rank >= request->size) {
    refuse("group_create: expected a rank below the number of ranks, got rank " + std::to_string(request->rank) + " of " +
           std::to_string(request->size));
  }
  if (request->deterministic > 1) {
    throw Error(TENON_UNSUPPORTED, "group_create: expected deterministic to be 0 or 1, got " + std::to_string(request->deterministic));
  }
  return {request->id, request->rank, request->size, request->timeout_ms, request->deterministic != 0};
}

/// How many times `count` elements the larger operand has.
std::uint64_t parts_of(std::uint32_t kind, std::uint32_t size) {
  return kind == TENON_COLLECTIVE_REDUCE_SCATTER || kind == TENON_COLLECTIVE_ALL_GATHER ? size : 1;
}

Collective checked(const tenon_collective& sent, const tenon_group& group) {
  check_needs("submit", sent.needs);
  if (sent.kind < TENON_COLLECTIVE_ALL_REDUCE || sent.kind > TENON_COLLECTIVE_RECEIVE) {
    throw Error(TENON_UNSUPPORTED, "submit: expected one of TENON_COLLECTIVE_*, got " + std::to_string(sent.kind));
  }
  const bool combines = sent.kind == TENON_COLLECTIVE_ALL_REDUCE || sent.kind == TENON_COLLECTIVE_REDUCE_SCATTER;
  const bool has_peer =
      sent.kind == TENON_COLLECTIVE_BROADCAST || sent.kind == TENON_COLLECTIVE_SEND || sent.kind == TENON_COLLECTIVE_RECEIVE;
  if (sent.dtype == TENON_DTYPE_NONE || sent.dtype >= TENON_DTYPE_COUNT || size_of(sent.dtype) == 0) {
    throw Error(TENON_UNSUPPORTED, "submit: expected a dtype of whole bytes, got " + std::to_string(sent.dtype));
  }
  if (combines) {
    if (sent.operation < TENON_REDUCE_SUM || sent.operation > TENON_REDUCE_AVG) {
      throw Error(TENON_UNSUPPORTED, "submit: expected one of TENON_REDUCE_*, got " + std::to_string(sent.operation));
    }
    if ((group.dtypes & TENON_DTYPE_BIT(sent.dtype)) == 0) {
      throw Error(TENON_UNSUPPORTED, std::string("submit: ranks cannot combine ") + name_of(sent.dtype));
    }
    constexpr std::uint64_t floating = TENON_DTYPE_BIT(TENON_DTYPE_F16) | TENON_DTYPE_BIT(TENON_DTYPE_BF16) |
                                       TENON_DTYPE_BIT(TENON_DTYPE_F32) | TENON_DTYPE_BIT(TENON_DTYPE_F64);
    if (sent.operation == TENON_REDUCE_AVG && (floating & TENON_DTYPE_BIT(sent.dtype)) == 0) {
      throw Error(TENON_UNSUPPORTED, std::string("submit: averages are of floating dtypes, got ") + name_of(sent.dtype));
    }
  }
  if (has_peer && sent.peer >= group.size) {
    refuse("submit: expected a rank below " + std::to_string(group.size) + ", got " + std::to_string(sent.peer));
  }
  if (sent.kind >= TENON_COLLECTIVE_SEND && sent.peer == group.rank)
    refuse("submit: rank " + std::to_string(group.rank) + " sends to itself");
  const auto element = static_cast<std::uint64_t>(size_of(sent.dtype));
  if (sent.count > UINT64_MAX / 2 / element / parts_of(sent.kind, group.size)) {
    refuse("submit: " + std::to_string(sent.count) + " elements exceed the address space");
  }
  const bool reads = sent.kind != TENON_COLLECTIVE_RECEIVE && (sent.kind != TENON_COLLECTIVE_BROADCAST || sent.peer == group.rank);
  const bool writes = sent.kind != TENON_COLLECTIVE_SEND;
  const auto check_address = [&](const char* name, std::uint64_t address) {
    if (sent.count > 0 && (address == 0 || address % element != 0)) {
      refuse(std::string("submit: expected a ") + name + " at a multiple of " + std::to_string(element) + " bytes, got address " +
             std::to_string(address));
    }
  };
  if (reads) check_address("source", sent.source);
  if (writes) check_address("destination", sent.destination);
  return {sent.kind,  combines ? sent.operation : 0, has_peer ? sent.peer : 0,     sent.dtype,
          sent.count, reads ? sent.source : 0,       writes ? sent.destination : 0};
}

tenon_status group_create(tenon_device* self, const tenon_group_request* request, tenon_group** out_group, tenon_error* error) {
  return guarded(error, [&] {
    const GroupOptions options = checked(request);
    auto group = std::make_unique<tenon_group>();
    group->rank = options.rank;
    group->size = options.size;
    group->dtypes = self->backend->combined_dtypes;
    group->group = self->device->join(options);
    *out_group = group.release();
  });
}
void group_destroy(tenon_group* group) {
  guarded(nullptr, [&] { group->group.reset(); });
  delete group;
}

tenon_status submit(tenon_group* self, const tenon_collective* collectives, std::uint32_t stride, std::uint32_t count, tenon_stream* stream,
                    tenon_error* error) {
  return guarded(error, [&] {
    if (count == 0) return;
    if (collectives == nullptr || stride < collective_size_v1) {
      refuse("submit: expected collectives of at least " + std::to_string(collective_size_v1) + " bytes, got " +
             std::to_string(collectives == nullptr ? 0 : stride));
    }
    std::vector<Collective> list;
    list.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      tenon_collective sent;
      std::memcpy(&sent, reinterpret_cast<const char*>(collectives) + std::size_t{i} * stride, sizeof sent);
      list.push_back(checked(sent, *self));
    }
    self->group->submit(list, *stream->stream);
  });
}

tenon_status group_query(tenon_group* self, tenon_error* error) {
  return guarded(error, [&] { self->group->query(); });
}
void group_abort(tenon_group* self) {
  self->group->abort();
}

}  // namespace

tenon_group_id Backend::make_group_id() {
  throw Error(TENON_UNSUPPORTED, "group_id: this backend has no collectives");
}
std::unique_ptr<Group> Device::join(const GroupOptions&) {
  throw Error(TENON_UNSUPPORTED, "group_create: this device joins no groups");
}

tenon_collectives_table detail::make_collectives_table(std::uint64_t dtypes) {
  const tenon_collectives_table table{
      sizeof(tenon_collectives_table), 0, dtypes, group_id, group_create, group_destroy, submit, group_query, group_abort};
  return table;
}

}  // namespace tenon::sdk
