// SPDX-License-Identifier: Apache-2.0
// An op of the mutant's own and an extension.
#include <algorithm>

#include "mutant.h"

namespace tenon::mutants {
namespace {

/// The result is like operand 0.
tenon_status infer(const tenon_tensor_desc* inputs, std::uint32_t, const tenon_attributes_vendor*, tenon_vendor_result* out_results,
                   std::uint32_t, tenon_error* error) {
  if (is(Mutation::infer_sets_nothing)) {
    std::memset(static_cast<void*>(out_results), 0, sizeof *out_results);
    return TENON_OK;
  }
  if (is(Mutation::infer_without_reason)) return TENON_INVALID_ARGUMENT;
  const tenon_tensor_desc x =
      is(Mutation::infer_takes_what_is_absent) ? tenon_tensor_desc{nullptr, nullptr, 0, TENON_DTYPE_F32} : inputs[0];
  if (x.dtype != TENON_DTYPE_F32) return say(error, TENON_INVALID_ARGUMENT, "expected x of f32");
  tenon_vendor_result result{};
  result.dtype = x.dtype;
  result.rank = x.rank;
  std::copy_n(x.shape, x.rank, result.shape);
  *out_results = result;
  return TENON_OK;
}

const void* extension(tenon_backend*, const char*, std::uint32_t) {
  return mutation_name;
}

}  // namespace

void declare_vendor_ops(tenon_backend_info& info) {
  static const bool declares = is(Mutation::infer_sets_nothing) || is(Mutation::infer_without_reason) ||
                               is(Mutation::infer_takes_what_is_absent) || is(Mutation::ignores_vendor_attributes) ||
                               is(Mutation::vendor_op_among_listed_ops) || is(Mutation::vendor_op_without_arrow);
  static const tenon_vendor_op rectify{.id = is(Mutation::vendor_op_among_listed_ops) ? tenon_op{TENON_OP_Relu} : tenon_op{TENON_OP_VENDOR},
                                       .version = 1,
                                       .domain = "com.example",
                                       .name = "Rectify",
                                       .schema = is(Mutation::vendor_op_without_arrow) ? "x:T; slope:float=0" : "x:T -> y:T; slope:float=0",
                                       .infer = infer};
  if (!declares) return;
  info.vendor_ops = &rectify;
  info.vendor_op_count = 1;
  info.vendor_op_stride = sizeof rectify;
}

void rectify(Graph::Node& node) {
  if (node.abi.op != TENON_OP_VENDOR || node.abi.version != 1) return;
  node.abi.op = TENON_OP_Relu;
  node.abi.version = 14;
  node.attributes = {sizeof(tenon_attributes_none)};
}

void spoil_extension(tenon_backend_table& table) {
  if (is(Mutation::extension_for_any_name)) table.extension = extension;
}

}  // namespace tenon::mutants
