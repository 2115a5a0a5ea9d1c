// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/vendor_op.h>

#include <algorithm>
#include <vector>

#include <tenon/sdk/error.h>

#include "counted.h"

namespace tenon::sdk {

const tenon_attribute& VendorAttributes::find(std::string_view name, std::uint32_t type) const {
  for (std::uint32_t i = 0; i < all_->count; ++i) {
    const tenon_attribute& attribute = all_->attributes[i];
    if (name != attribute.name) continue;
    const bool is_list = type == TENON_ATTRIBUTE_STRING || type == TENON_ATTRIBUTE_INTEGERS || type == TENON_ATTRIBUTE_FLOATS;
    if (attribute.type == type && (is_list || attribute.count == 1)) return attribute;
    throw Error(TENON_INVALID_ARGUMENT, "attribute " + std::string(name) + ": expected type " + attribute_type_name(type) + ", got " +
                                            attribute_type_name(attribute.type));
  }
  throw Error(TENON_INVALID_ARGUMENT, "expected an attribute " + std::string(name) + ", got none of that name");
}

std::string_view VendorAttributes::string(std::string_view name) const {
  const tenon_attribute& found = find(name, TENON_ATTRIBUTE_STRING);
  return {static_cast<const char*>(found.data), found.count};
}

const tenon_tensor_desc& VendorInference::input(std::size_t i) const {
  if (!has_input(i)) throw Error(TENON_INVALID_ARGUMENT, "expected operand " + std::to_string(i) + ", got none");
  return inputs_[i];
}

void VendorInference::result(tenon_dtype dtype, std::span<const std::int64_t> shape) {
  if (count_ == results_.size()) throw Error(TENON_INTERNAL, "its rule sets more than the " + counted(count_, "result") + " that it has");
  if (shape.size() > TENON_MAX_RANK) {
    throw Error(TENON_INVALID_ARGUMENT,
                "expected a result of at most " + std::to_string(TENON_MAX_RANK) + " dimensions, got " + std::to_string(shape.size()));
  }
  tenon_vendor_result& result = results_[count_++];
  result = {};
  result.dtype = dtype;
  result.rank = static_cast<std::uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), result.shape);
}

std::string describe(const tenon_tensor_desc& operand) {
  std::string text = std::string(name_of(operand.dtype)) + "(";
  for (std::uint32_t d = 0; d < operand.rank; ++d) text += (d == 0 ? "" : ",") + std::to_string(operand.shape[d]);
  return text + ")";
}

namespace detail {

tenon_status infer_with(void (*rule)(VendorInference&), const tenon_tensor_desc* inputs, std::uint32_t input_count,
                        const tenon_attributes_vendor* attributes, tenon_vendor_result* out_results, std::uint32_t result_count,
                        tenon_error* error) noexcept {
  try {
    std::vector<tenon_vendor_result> results(result_count);  // out-parameters stay untouched on failure
    VendorInference at({inputs, input_count}, *attributes, results);
    rule(at);
    if (at.result_count() != result_count) {
      throw Error(TENON_INTERNAL, "its rule set " + counted(at.result_count(), "result") + ", expected " + std::to_string(result_count));
    }
    std::copy(results.begin(), results.end(), out_results);
    return TENON_OK;
  } catch (...) {
    return report_current_exception(error);
  }
}

}  // namespace detail
}  // namespace tenon::sdk
