// SPDX-License-Identifier: Apache-2.0
#include "loader/complete.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "loader/load_error.h"

namespace tenon::loader {
namespace {

// The bytes up to the end of a field: the sizes in the oldest header that the core accepts (ABI 1.0), by the last
// field that each struct had then. They never change.
#define TENON_SIZE_THROUGH(type, field) (offsetof(type, field) + sizeof(type::field))
constexpr std::size_t info_size_v1 = TENON_SIZE_THROUGH(tenon_backend_info, create);
constexpr std::size_t table_size_v1 = TENON_SIZE_THROUGH(tenon_backend_table, extension);
constexpr std::size_t capability_size_v1 = TENON_SIZE_THROUGH(tenon_capability, reserved);
constexpr std::size_t option_size_v1 = TENON_SIZE_THROUGH(tenon_option, help);
constexpr std::size_t vendor_op_size_v1 = TENON_SIZE_THROUGH(tenon_vendor_op, infer);
#undef TENON_SIZE_THROUGH
const std::string first_abi = fmt::format("ABI {}.{}", TENON_ABI_MAJOR, TENON_ABI_MINOR_LOWEST);
// The smallest optional block has no slots: all of its slots may be empty.
constexpr std::size_t block_size_v1 = 8;

// A larger count or distance means that it was never set: no element will grow beyond this.
constexpr std::uint32_t max_entries = 1u << 20;
constexpr std::uint32_t max_stride = 1024;

const char* const rebuild = "rebuild the plugin with the header tenon/backend.h, or report this to its vendor";

struct Slot {
  const char* name;
  std::size_t offset;
};
#define TENON_SLOT(name) \
  { #name, offsetof(tenon_backend_table, name) }
constexpr Slot mandatory[] = {
    TENON_SLOT(shutdown),        TENON_SLOT(destroy),        TENON_SLOT(device_count),
    TENON_SLOT(device_info),     TENON_SLOT(device_open),    TENON_SLOT(device_close),
    TENON_SLOT(memory_allocate), TENON_SLOT(memory_import),  TENON_SLOT(memory_free),
    TENON_SLOT(memory_stats),    TENON_SLOT(copy),           TENON_SLOT(fill),
    TENON_SLOT(stream_create),   TENON_SLOT(stream_destroy), TENON_SLOT(stream_synchronize),
    TENON_SLOT(event_create),    TENON_SLOT(event_destroy),  TENON_SLOT(event_record),
    TENON_SLOT(event_wait),      TENON_SLOT(event_query),    TENON_SLOT(event_synchronize),
    TENON_SLOT(event_elapsed),   TENON_SLOT(supports),       TENON_SLOT(plan_create),
    TENON_SLOT(plan_destroy),    TENON_SLOT(plan_info),      TENON_SLOT(plan_execute),
};
#undef TENON_SLOT
static_assert(std::size(mandatory) * sizeof(void*) == offsetof(tenon_backend_table, blas) - offsetof(tenon_backend_table, shutdown),
              "every slot up to plan_execute is mandatory");

/// Copies an array whose elements are `stride` bytes apart into elements of our size.
template <class Element>
std::vector<Element> complete_array(const char* what, const Element* sent, std::uint32_t count, std::uint32_t stride,
                                    std::size_t min_stride) {
  if (count == 0) return {};
  if (!sent || count > max_entries) {
    throw LoadError(TENON_INCOMPATIBLE,
                    fmt::format("its query says it has {} {} and hands over {}", count, what, sent ? "too many" : "none"), rebuild);
  }
  if (stride < min_stride) {
    throw LoadError(
        TENON_INCOMPATIBLE,
        fmt::format("its {} are {} bytes apart, less than the {} of {}: the stride was not set", what, stride, min_stride, first_abi),
        rebuild);
  }
  if (stride % alignof(Element) != 0 || stride > max_stride) {
    throw LoadError(
        TENON_INCOMPATIBLE,
        fmt::format("its {} are {} bytes apart, expected a multiple of {} up to {}", what, stride, alignof(Element), max_stride), rebuild);
  }
  std::vector<Element> result;
  result.reserve(count);
  const char* const bytes = reinterpret_cast<const char*>(sent);
  for (std::uint32_t i = 0; i < count; ++i) {
    result.push_back(completed(*reinterpret_cast<const Element*>(bytes + std::size_t{i} * stride), stride));
  }
  return result;
}

template <class Block>
void complete_block(const char* what, const Block*& block, Block& out_block) {
  if (!block) return;
  if (block->struct_size < block_size_v1) {
    throw LoadError(TENON_INCOMPATIBLE, fmt::format("the struct_size of its {} table is {}: it was not set", what, block->struct_size),
                    rebuild);
  }
  out_block = completed(*block);
  block = &out_block;
}

/// A routine has a slot and dtypes, or neither.
void check_dtypes(const tenon_blas_table& blas) {
#define TENON_BLAS(id, routine, level, signature, dtypes)                                                              \
  if ((blas.routine != nullptr) != (blas.routine##_dtypes != 0)) {                                                     \
    throw LoadError(TENON_INCOMPATIBLE,                                                                                \
                    blas.routine != nullptr ? "its BLAS table has " #routine " without a dtype in " #routine "_dtypes" \
                                            : "its BLAS table has dtypes in " #routine "_dtypes without " #routine,    \
                    rebuild);                                                                                          \
  }
#include <tenon/blas.def>
#undef TENON_BLAS
}

}  // namespace

Answer complete_answer(const tenon_backend_info& sent) {
  if (sent.struct_size < info_size_v1) {
    throw LoadError(
        TENON_INCOMPATIBLE,
        fmt::format("the struct_size in its answer to the query is {}, less than the {} of {}", sent.struct_size, info_size_v1, first_abi),
        rebuild);
  }
  Answer answer;
  answer.info = completed(sent);
  tenon_backend_info& info = answer.info;
  if (info.digest_count > max_entries || (info.digest_count != 0 && !info.digests)) {
    throw LoadError(
        TENON_INCOMPATIBLE,
        fmt::format("its query says it has {} op digests and hands over {}", info.digest_count, info.digests ? "too many" : "none"),
        rebuild);
  }
  answer.capabilities =
      complete_array("capabilities", info.capabilities, info.capability_count, info.capability_stride, capability_size_v1);
  answer.options = complete_array("options", info.options, info.option_count, info.option_stride, option_size_v1);
  answer.vendor_ops = complete_array("vendor_ops", info.vendor_ops, info.vendor_op_count, info.vendor_op_stride, vendor_op_size_v1);
  info.capabilities = answer.capabilities.data();
  info.capability_stride = sizeof(tenon_capability);
  info.options = answer.options.data();
  info.option_stride = sizeof(tenon_option);
  info.vendor_ops = answer.vendor_ops.data();
  info.vendor_op_stride = sizeof(tenon_vendor_op);
  return answer;
}

void complete_table(const tenon_backend_table& sent, Table& out_table) {
  if (sent.struct_size < table_size_v1) {
    throw LoadError(TENON_INCOMPATIBLE,
                    fmt::format("the struct_size of its table is {}, less than the {} of {}", sent.struct_size, table_size_v1, first_abi),
                    rebuild);
  }
  tenon_backend_table& table = out_table.table;
  table = completed(sent);
  std::string empty;
  for (const Slot& slot : mandatory) {
    void* function = nullptr;
    std::memcpy(&function, reinterpret_cast<const char*>(&table) + slot.offset, sizeof function);
    if (!function) empty += (empty.empty() ? "" : ", ") + std::string(slot.name);
  }
  if (!empty.empty()) {
    throw LoadError(TENON_INCOMPATIBLE, fmt::format("its table leaves mandatory slots empty: {}", empty),
                    "the backend must fill every slot up to plan_execute; report this to its vendor");
  }
  complete_block("BLAS", table.blas, out_table.blas);
  check_dtypes(out_table.blas);
  complete_block("capture", table.capture, out_table.capture);
  complete_block("pack", table.pack, out_table.pack);
  complete_block("profile", table.profile, out_table.profile);
  complete_block("collectives", table.collectives, out_table.collectives);
}

}  // namespace tenon::loader
