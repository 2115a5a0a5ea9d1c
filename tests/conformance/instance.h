// SPDX-License-Identifier: Apache-2.0
// instance.h - an op in one dtype with one variant, its reference results and their comparison; shared by the files that make cases.
#pragma once

#include <string>
#include <vector>

#include "case.h"

namespace tenon::conformance {

/// The subject of most cases.
struct Instance {
  const OpCase* op_case;
  const OpLine* line;
  const Variant* variant;
  tenon_dtype dtype;
  std::string name;  ///< "softmax/f32(8,10)/axis=1"

  /// The filled operands; cached until another instance is used.
  const std::vector<Array>& inputs(const CaseContext& context) const { return shared_by(context).inputs; }
  /// The results for dense, separate operands, with which other runs are compared; computed once and cached like inputs(). Another case
  /// checks that they have the same bits every time.
  const std::vector<Array>& dense_answer(const CaseContext& context) const;
  Net net(const std::vector<Array>& operands, const Setting& setting = {}) const {
    return net_of(*line, *variant, dtype, operands, setting);
  }
  Bound bound() const { return op_case->bound(*variant, dtype); }
  bool any_empty() const;
  bool all_results_empty() const;

 private:
  Shared& shared_by(const CaseContext& context) const;
};
bool any_empty(const Variant& variant);

/// "inputs f32(8,10) strides (20,2); f32(10)".
std::string describe(const std::vector<Array>& inputs, const std::vector<Layout>& layouts = {});
/// The elements as seen through a layout with zero strides: each is read where the strides point.
Array seen_through(const Array& array, const Dims& strides);
/// Throws Failure with the output, its first wrong element and `where`.
void expect_close(const std::vector<Array>& expected, const std::vector<Array>& got, const Bound& bound, const std::string& where);
/// Throws Failure with `what`, the first element with different bits, and `where`.
void expect_same_bits(const std::vector<Array>& expected, const std::vector<Array>& got, const std::string& what, const std::string& where);
/// Throws Failure for a plan that could not be made, Unsupported for one that was refused.
void expect_made(const Plan& plan);
/// Throws Failure for an execution that failed or wrote outside its outputs.
void expect_clean(const Outcome& outcome);
/// The oracle's results for these operands.
std::vector<Array> oracle_answer(const CaseContext& context, const Instance& at, const std::vector<Array>& inputs);

}  // namespace tenon::conformance
