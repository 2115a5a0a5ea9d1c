// instance.h - an op in one dtype with one variant, what the oracle says to it, and how that is compared: shared by the files that make
// cases.
#pragma once

#include <string>
#include <vector>

#include "case.h"

namespace tenon::conformance {

/// What most cases are about.
struct Instance {
  const OpCase* op_case;
  const OpLine* line;
  const Variant* variant;
  tenon_dtype dtype;
  std::string name;  ///< "softmax/f32(8,10)/axis=1"

  /// Its operands, filled; kept until another instance is asked about.
  const std::vector<Array>& inputs(const Kit& kit) const { return shared_by(kit).inputs; }
  /// The plainest run, which others are held against; made once, kept as long. That it gives the same bits every time is a case of its own.
  const std::vector<Array>& dense_answer(const Kit& kit) const;
  Net net(const std::vector<Array>& operands, const Setting& setting = {}) const {
    return net_of(*line, *variant, dtype, operands, setting);
  }
  Bound bound() const { return op_case->bound != nullptr ? op_case->bound(*variant, dtype) : Bound{}; }
  bool any_empty() const;
  bool all_results_empty() const;

 private:
  Shared& shared_by(const Kit& kit) const;
};
bool any_empty(const Variant& variant);

/// "inputs f32(8,10) strides (20,2); f32(10)".
std::string describe(const std::vector<Array>& inputs, const std::vector<Layout>& layouts = {});
/// The elements that a layout with repeated elements shows: each comes from where its strides point.
Array seen_through(const Array& array, const Dims& strides);
/// Throws a Failure that names the output, its first wrong element and `where`.
void expect_close(const std::vector<Array>& want, const std::vector<Array>& got, const Bound& bound, const std::string& where);
/// Throws a Failure that says `what`, the first element with other bits, and `where`.
void expect_same_bits(const std::vector<Array>& want, const std::vector<Array>& got, const std::string& what, const std::string& where);
/// Throws a Failure for a plan that could not be made, Unsupported for one that was refused.
void expect_made(const Plan& plan);
/// Throws a Failure for an execution that failed or wrote where it may not.
void expect_clean(const Outcome& outcome);
/// What the oracle says to these operands.
std::vector<Array> oracle_answer(const Kit& kit, const Instance& at, const std::vector<Array>& inputs);

}  // namespace tenon::conformance
