// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/vendor_op.h - ops of a backend's vendor: the attributes of their nodes, and `infer` in
// C++.
//
// A line of vendor_ops.def, in the backend's folder, declares the op; tools/cmake/backend.cmake puts
// it into the tables:
//
//   TENON_VENDOR_OP(TENON_OP_VENDOR, "com.example", SoftClip, 1, soft_clip, 0, "x:T -> y:T; limit:float=1")
//
// The columns are the backend's id, domain, name, version, the stem of kernel and rule, the operand
// whose dtype selects the kernel, and the schema of tenon_vendor_op. A source of the backend defines
// both, at the end of the backend's namespace:
//
//   TENON_KERNEL(soft_clip, float, double)
//   TENON_VENDOR_INFER(soft_clip, infer)  // void infer(sdk::VendorInference& at)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <tenon/backend.h>
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/vendor_schema.h>

namespace tenon::sdk {

/// The attributes of a node by name. Borrows them.
/// Errors  an attribute that is not there, or has another type.
class VendorAttributes {
 public:
  explicit VendorAttributes(const tenon_attributes_vendor& all) : all_(&all) {}
  /// Those of a kernel's call.
  explicit VendorAttributes(const Call& call) : all_(&call.attr<tenon_attributes_vendor>()) {}

  std::int64_t integer(std::string_view name) const { return list<std::int64_t>(name, TENON_ATTRIBUTE_INTEGER)[0]; }
  double number(std::string_view name) const { return list<double>(name, TENON_ATTRIBUTE_FLOAT)[0]; }
  std::string_view string(std::string_view name) const;
  std::span<const std::int64_t> integers(std::string_view name) const { return list<std::int64_t>(name, TENON_ATTRIBUTE_INTEGERS); }
  std::span<const double> numbers(std::string_view name) const { return list<double>(name, TENON_ATTRIBUTE_FLOATS); }

 private:
  const tenon_attribute& find(std::string_view name, std::uint32_t type) const;
  template <class T>
  std::span<const T> list(std::string_view name, std::uint32_t type) const {
    const tenon_attribute& found = find(name, type);
    return {static_cast<const T*>(found.data), found.count};
  }
  const tenon_attributes_vendor* all_;
};

/// What a rule for dtypes and shapes reads and sets.
class VendorInference {
 public:
  /// For the wrapper of TENON_VENDOR_INFER.
  VendorInference(std::span<const tenon_tensor_desc> inputs, const tenon_attributes_vendor& all, std::span<tenon_vendor_result> results)
      : attributes(all), inputs_(inputs), results_(results) {}

  const VendorAttributes attributes;
  std::size_t input_count() const { return inputs_.size(); }
  bool has_input(std::size_t i) const { return i < inputs_.size() && inputs_[i].dtype != TENON_DTYPE_NONE; }
  /// Errors: the operand is absent.
  const tenon_tensor_desc& input(std::size_t i) const;
  /// Sets the next result, in the order of the schema. Errors: more results than the op has, a rank
  /// above TENON_MAX_RANK.
  void result(tenon_dtype dtype, std::span<const std::int64_t> shape);
  /// Sets the next result to the dtype and shape of operand i.
  void result_like(std::size_t i) { result(input(i).dtype, {input(i).shape, input(i).rank}); }
  std::size_t result_count() const { return count_; }

 private:
  std::span<const tenon_tensor_desc> inputs_;
  std::span<tenon_vendor_result> results_;
  std::size_t count_ = 0;
};
/// "f32(8,10)", for messages.
std::string describe(const tenon_tensor_desc& operand);

/// The type of tenon_vendor_op.infer.
using VendorInfer = std::remove_pointer_t<decltype(tenon_vendor_op::infer)>;

namespace detail {
tenon_status infer_with(void (*rule)(VendorInference&), const tenon_tensor_desc* inputs, std::uint32_t input_count,
                        const tenon_attributes_vendor* attributes, tenon_vendor_result* out_results, std::uint32_t result_count,
                        tenon_error* error) noexcept;
}  // namespace detail

/// Defines the `infer` of the op with this stem from a function that throws sdk::Error.
#define TENON_VENDOR_INFER(stem, rule)                                                                                                   \
  ::tenon::sdk::VendorInfer infer_##stem;                                                                                                \
  tenon_status TENON_CALL infer_##stem(const tenon_tensor_desc* inputs, uint32_t input_count, const tenon_attributes_vendor* attributes, \
                                       tenon_vendor_result* out_results, uint32_t result_count, tenon_error* error) {                    \
    return ::tenon::sdk::detail::infer_with(rule, inputs, input_count, attributes, out_results, result_count, error);                    \
  }

}  // namespace tenon::sdk
