// SPDX-License-Identifier: Apache-2.0
// Memory, copies and their statistics.
#include "mutant.h"

namespace tenon::mutants {
namespace {

tenon_status memory_allocate(tenon_device* device, const tenon_memory_request* given, tenon_memory_result* out_result, tenon_error* error) {
  tenon_memory_request request = *given;
  request.struct_size = sizeof request;
  const std::uint64_t size = given->size_bytes;
  const bool is_small = size < std::uint64_t{1} << 30;
  if (is(Mutation::ignores_needs_of_memory_requests)) request.needs = 0;
  if (is(Mutation::ignores_larger_alignments)) request.alignment_bytes = 0;
  if (is(Mutation::expects_its_own_size_of_requests) && given->struct_size != sizeof request)
    return say(error, TENON_INVALID_ARGUMENT, "a memory request of another size");
  if (is(Mutation::refuses_zero_bytes) && size == 0) return say(error, TENON_INVALID_ARGUMENT, "nothing to allocate");
  const bool shifted = is(Mutation::misaligned_memory) && is_small;
  if (shifted) request.size_bytes += 8;
  if (is(Mutation::less_memory_than_asked) && is_small) request.size_bytes -= size / 4;
  tenon_memory_result whole{};
  whole.struct_size = sizeof whole;
  tenon_memory_result* const result = is(Mutation::writes_whole_results) ? &whole : out_result;
  tenon_status status = real().memory_allocate(device, &request, result, error);
  if (status == TENON_OK && is(Mutation::writes_whole_results)) *out_result = whole;
  if (status == TENON_OK && shifted) {
    out_result->address += 8;
    if (out_result->host != nullptr) out_result->host = static_cast<char*>(out_result->host) + 8;
  }
  if (status == TENON_OK && is(Mutation::host_memory_without_a_pointer) && request.kind != TENON_MEMORY_DEVICE) out_result->host = nullptr;
  if (status == TENON_OUT_OF_MEMORY && is(Mutation::out_of_memory_is_internal)) status = TENON_INTERNAL;
  return status;
}

tenon_status memory_import(tenon_device* device, const tenon_memory_import* given, tenon_memory_result* out_result, tenon_error* error) {
  tenon_memory_import altered = *given;
  altered.struct_size = sizeof altered;
  std::uint32_t& terms = altered.terms;
  if (is(Mutation::ignores_needs_of_memory_imports)) altered.needs = 0;
  if (is(Mutation::expects_its_own_size_of_imports) && given->struct_size != sizeof altered)
    return say(error, TENON_INVALID_ARGUMENT, "a memory import of another size");
  if (is(Mutation::import_not_copied) && terms == TENON_IMPORT_COPY) terms = TENON_IMPORT_BORROW_READ_ONLY;
  if (is(Mutation::unknown_terms_are_invalid) && terms > TENON_IMPORT_BORROW_READ_WRITE)
    return say(error, TENON_INVALID_ARGUMENT, "terms that it does not know");
  if (is(Mutation::import_on_any_terms) && terms > TENON_IMPORT_BORROW_READ_WRITE) terms = TENON_IMPORT_COPY;
  return real().memory_import(device, &altered, out_result, error);
}

void memory_free(tenon_memory* memory) {
  if (is(Mutation::synchronize_does_not_wait)) return;  // work may still write to it
  if (!is(Mutation::frees_no_device_memory)) real().memory_free(memory);
}

tenon_status memory_stats(tenon_device* device, tenon_memory_stats* out_stats, tenon_error* error) {
  const tenon_status status = real().memory_stats(device, out_stats, error);
  if (status == TENON_OK && is(Mutation::counts_no_allocations)) out_stats->allocation_count = 1;
  return status;
}

tenon_status copy(tenon_device* device, const tenon_copy* what, tenon_stream* stream, tenon_error* error) {
  tenon_copy altered = *what;
  if (is(Mutation::ignores_needs_of_copies)) altered.needs = 0;
  if (is(Mutation::copy_off_by_one) && altered.size_bytes > 0) --altered.size_bytes;
  if (is_recorded(stream)) {
    record(stream, device, [device, altered](tenon_stream* to, tenon_error* e) { return real().copy(device, &altered, to, e); });
    return TENON_OK;
  }
  return real().copy(device, &altered, stream, error);
}

tenon_status fill(tenon_device* device, std::uint64_t address, std::uint64_t size, std::uint8_t value, tenon_stream* stream,
                  tenon_error* error) {
  if (is(Mutation::fill_wrong_byte)) value = static_cast<std::uint8_t>(value & 0x7F);
  if (is_recorded(stream)) {
    record(stream, device, [=](tenon_stream* to, tenon_error* e) { return real().fill(device, address, size, value, to, e); });
    return TENON_OK;
  }
  return real().fill(device, address, size, value, stream, error);
}

}  // namespace

void spoil_memory(tenon_backend_table& table) {
  table.memory_allocate = memory_allocate;
  table.memory_import = memory_import;
  table.memory_free = memory_free;
  table.memory_stats = memory_stats;
  table.copy = copy;
  table.fill = fill;
}

}  // namespace tenon::mutants
