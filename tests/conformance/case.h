// SPDX-License-Identifier: Apache-2.0
// case.h - the description of an op from which the harness makes cases: forward, gradient, strides, guards, bad arguments and more.
//
// tests/conformance/ops/<family>.cpp defines cases_<family>(); the build collects them from ops.def. A listed op without a case fails the
// suite.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tenon/backend.h>

#include "array.h"
#include "conformance.h"
#include "device.h"

namespace tenon::conformance {

/// The attribute struct of a node, by value.
class AttributeBytes {
 public:
  AttributeBytes() : AttributeBytes(tenon_attributes_none{}) {}
  template <class Struct>
  AttributeBytes(Struct value) : words_((sizeof value + 7) / 8) {  // not explicit: family files write the struct itself
    value.struct_size = sizeof value;
    std::memcpy(words_.data(), &value, sizeof value);
  }
  const void* data() const { return words_.data(); }
  void* data() { return words_.data(); }
  template <class Struct>
  const Struct& as() const {
    return *reinterpret_cast<const Struct*>(words_.data());
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// Which special values an operand gets in the `special` case.
enum class Special {
  none,
  infinite,   ///< +-Inf, denormals, -0
  not_small,  ///< +-Inf, NaN, -0: for chains of products, which could underflow in one width and not in another
  not_large,  ///< those and denormals: for ops whose finite operands could overflow in one width and not in another
  all,        ///< those, the largest and the smallest normal number
};

/// How an operand is filled.
struct Values {
  double low = -2, high = 2;
  bool whole = false;                    ///< integers in [low, high)
  std::optional<double> sometimes = {};  ///< one element in four has this value
  double gap = 0;                        ///< values are at least this far from 0: kinks and poles
  /// Integers: unless `none`, one in four is near a power of two that 32 bits, an f32 or an f64 does not hold.
  Special special = Special::none;
};

/// Stands for the accumulation dtype of the dtype under test, S in ops.def.
inline constexpr tenon_dtype dtype_of_sums = TENON_DTYPE_COUNT;
/// Stands for that of a learning rate: f64, or f32 if the device under test does not compute with f64.
inline constexpr tenon_dtype dtype_of_rates = TENON_DTYPE_COUNT + 1;
/// Whether the device under test computes with f64.
bool has_f64();
void set_f64(bool computes_with_f64);
/// The dtype that a spec stands for when `dtype` is under test.
tenon_dtype resolved(tenon_dtype spec, tenon_dtype dtype);

/// TENON_DTYPE_NONE stands for the dtype under test.
struct OperandSpec {
  Dims shape;
  Values values = {};
  tenon_dtype dtype = TENON_DTYPE_NONE;
  bool present = true;
};
struct ResultSpec {
  Dims shape;
  tenon_dtype dtype = TENON_DTYPE_NONE;
  bool present = true;
};

/// One node: operands, results, attributes.
struct Variant {
  std::string label;  ///< attributes, for the name: "axis=1"; may be empty
  std::vector<OperandSpec> inputs;
  std::vector<ResultSpec> outputs;
  AttributeBytes attributes = {};
  /// Outputs that a training step writes over inputs, as (input, output), all at once. Empty: each input that fits output 0, in turn.
  std::vector<tenon_donation> donations = {};
};

inline const OperandSpec absent{{}, {}, TENON_DTYPE_NONE, false};
inline const ResultSpec omitted{{}, TENON_DTYPE_NONE, false};

/// What the result is compared with.
enum class Oracle {
  widened,     ///< the oracle on the same numbers in f64
  same_dtype,  ///< the oracle on the same operands, for results that depend on the dtype by definition
};

/// The largest error that a result may have, and why: what the arithmetic allows, no more and no less. It is stated for the dtype of the
/// arithmetic, which is f32 for f16 and bf16: their results are rounded once more, to within half an epsilon of theirs. A function may set
/// Bound::rounding to the magnitude of what is rounded to 16 bits before the end, as a sum is before its bias.
class Tolerance {
 public:
  using Function = Bound (*)(const Variant&, tenon_dtype);
  constexpr Tolerance() = default;
  /// Errors in epsilons of the dtype; 0: bitwise equal.
  constexpr Tolerance(const char* reason, double relative = 0, double absolute = 0)
      : why(reason), relative_(relative), absolute_(absolute) {}
  constexpr Tolerance(const char* reason, Function bound) : why(reason), bound_(bound) {}
  /// The same, and a zero has the sign that IEEE 754 arithmetic gives it.
  constexpr Tolerance with_signed_zeros() const {
    Tolerance result = *this;
    result.signed_zeros_ = true;
    return result;
  }
  Bound operator()(const Variant& variant, tenon_dtype dtype) const {
    const tenon_dtype arithmetic = resolved(dtype_of_sums, dtype);
    Bound bound = bound_ != nullptr ? bound_(variant, arithmetic) : Bound{relative_ * epsilon(arithmetic), absolute_ * epsilon(arithmetic)};
    const bool rounds = is_narrow(dtype) && (bound.relative != 0 || bound.absolute != 0);
    if (rounds) bound.absolute += bound.rounding * epsilon(dtype);
    bound.rounding = rounds ? epsilon(dtype) : 0;
    bound.signed_zeros = signed_zeros_;
    return bound;
  }
  const char* why = nullptr;  ///< where the bound comes from; the reference pages print it

 private:
  double relative_ = 0, absolute_ = 0;
  Function bound_ = nullptr;
  bool signed_zeros_ = false;
};

/// A property of every result. `broken` returns an empty string if it holds.
struct Property {
  std::string name;
  std::string (*broken)(const Variant&, tenon_dtype, const std::vector<Array>& inputs, const std::vector<Array>& outputs);
};

/// Operands and results from an independent source.
struct Golden {
  std::string name;
  Variant variant;
  std::vector<std::vector<double>> inputs;   ///< per operand; empty for an absent one
  std::vector<std::vector<double>> outputs;  ///< per result; empty for an omitted one
  std::vector<tenon_dtype> dtypes = {};      ///< empty: all dtypes of the case
  Bound (*bound)(tenon_dtype) = nullptr;     ///< for values that are less exact than the op's own bound
};

/// Operands that execution must refuse, and words that the message must contain.
struct BadArgument {
  std::string name;
  Variant variant;
  void (*spoil)(std::vector<Array>& inputs);
  std::vector<std::string> words;
  std::vector<tenon_dtype> dtypes = {};  ///< empty: all dtypes of the case
};

class CaseContext;
/// An additional case of the op. Throws Failure, Unsupported or NotRun.
struct Extra {
  std::string name;
  void (*check)(CaseContext&, tenon_dtype);
};

/// Everything the kit knows about an op.
struct OpCase {
  tenon_op op;
  std::vector<tenon_dtype> dtypes = {};  ///< empty: the mandatory dtypes of ops.def
  std::vector<Variant> variants;
  Tolerance bound = {};
  Oracle oracle = Oracle::widened;
  /// Inputs whose gradients are compared with finite differences.
  std::vector<std::size_t> gradient = {};
  /// Ops that compute those gradients; finite differences check them as well.
  std::vector<tenon_op> gradient_ops = {};
  /// Results that exist only for those ops: no gradient flows through them.
  std::vector<std::size_t> kept = {};
  std::vector<Property> also = {};
  std::vector<Golden> golden = {};
  std::vector<BadArgument> bad = {};
  std::vector<Extra> extras = {};
};

/// A line of ops.def.
struct OpLine {
  tenon_op op;
  std::uint32_t version;
  const char* name;  ///< "Softmax"
  const char* stem;  ///< "softmax"
  const char* family;
  std::uint64_t dtypes;  ///< mandatory
};
const std::vector<OpLine>& op_lines();
const OpLine& line_of(tenon_op op);
std::vector<tenon_dtype> dtypes_of(const OpCase& op_case);

/// How much is tested: reduced sizes (TENON_TEST_SIZE=small), the usual ones, or what takes up to an hour (profile deep). Family files
/// read it when they list their variants.
enum class Effort { small, usual, deep };
Effort effort();
void set_effort(Effort effort);
inline bool small_sizes() {
  return effort() == Effort::small;
}

/// All families' cases, in the order of ops.def.
std::vector<OpCase> all_op_cases();

// ---------------------------------------------------------------- running them

struct Failure : std::runtime_error {
  using runtime_error::runtime_error;
  Failure(const std::string& text, Facts known) : runtime_error(text), facts(std::move(known)) {}
  Facts facts;
};
struct Unsupported : std::runtime_error {
  using runtime_error::runtime_error;
};
struct NotRun : std::runtime_error {
  using runtime_error::runtime_error;
};

/// State that consecutive checks of one instance of an op share, since they use the same operands.
struct Shared {
  std::string name;
  std::uint64_t seed = 0;
  std::vector<Array> inputs;
  std::optional<std::vector<Array>> dense = {};  ///< their result on the device under test with dense, separate operands
};

/// The device under test, the oracle, and helpers that throw what a case reports.
class CaseContext {
 public:
  /// `judge` NULL: the device is the oracle. `with`: state shared with earlier cases.
  CaseContext(const Device& under_test, const Device* judge, std::uint64_t given_seed,
              std::shared_ptr<Shared> with = std::make_shared<Shared>())
      : device(under_test), oracle(judge), seed(given_seed), shared(std::move(with)) {}
  const Device& device;
  const Device* const oracle;
  const std::uint64_t seed;
  const std::shared_ptr<Shared> shared;

  /// Runs a Net on the device under test. Throws Unsupported if `supports` says no, Failure for anything else that is not a clean result.
  std::vector<Array> run(const Net& net, PlanOptions options = {}, unsigned char poison = 0xFF) const;
  /// Runs a Net on the oracle. Throws NotRun if the device under test is the oracle.
  std::vector<Array> judge(const Net& net) const;

  /// What a passing case measured, for the report.
  std::string remark;
};

/// How a node is run, where that differs from dense inputs in separate memory.
struct Setting {
  std::vector<Layout> layouts = {};        ///< per input
  std::uint32_t kind = TENON_VALUE_INPUT;  ///< of every input
  std::vector<tenon_donation> donations = {};
};
/// A Net of one node. Value i is input i for inputs that are present, in order; outputs follow.
Net net_of(const OpLine& line, const Variant& variant, tenon_dtype dtype, const std::vector<Array>& inputs, const Setting& setting = {});
/// Random operands of a variant. Absent ones have TENON_DTYPE_NONE.
std::vector<Array> fill(const Variant& variant, tenon_dtype dtype, std::uint64_t seed);

/// How the process that runs a case ends.
enum class Ending {
  shut_down,  ///< the process of its group closes devices and shuts backends down
  exits,      ///< the case has a process of its own, which calls exit(0) after `run`, with everything still open
};

/// One named case, ready to run.
struct Case {
  std::string name;
  std::string op;     ///< stem, routine, or "core"
  std::string group;  ///< family, signature, or "core": runs in one child process
  tenon_dtype dtype = TENON_DTYPE_NONE;
  bool mandatory = true;
  std::function<void(CaseContext&)> run;  ///< throws Failure, Unsupported or NotRun if it is not a pass
  Ending ending = Ending::shut_down;
};
/// Cases of the given ops, of those whose line `wanted` accepts. Their names begin with the line's stem and a '/'.
std::vector<Case> op_case_list(const std::vector<OpCase>& op_cases, const std::function<bool(const OpLine&)>& wanted);
/// Cases of profile core: lifecycle, memory, streams, plans, recordings.
std::vector<Case> core_case_list();
/// Slots of the plugin ABI's tables and host services that no case in that list covers.
std::vector<std::string> slot_gaps();
/// The part of that list about recordings, for backends that offer them.
std::vector<Case> capture_case_list();
/// Checks the capability table and `supports`, yes and no, on random instances of every op.
std::vector<Case> capability_consistency_case_list();
/// Models trained on the device and on the oracle. `models`: the folder of model definitions.
std::vector<Case> training_case_list(const std::filesystem::path& models);
/// Cases for every routine of blas.def in every dtype of its line.
std::vector<Case> blas_case_list();
/// Cases for ONNX's tests in the folder `data`. Errors: tenon::Error for a folder without tests.
std::vector<Case> onnx_case_list(const std::filesystem::path& data);

/// Compares gradients with finite differences, both in f64 on the device under test. Throws if the case does not pass.
void check_gradient(CaseContext& context, const OpCase& op_case, const Variant& variant, std::uint64_t seed);

}  // namespace tenon::conformance
