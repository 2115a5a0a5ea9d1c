// case.h - what a room says about an op, from which the harness makes cases: forward, gradient, strides, guards, bad arguments and more.
//
// tests/conformance/ops/<room>.cpp defines cases_<room>(); the build collects them from ops.def. A listed op without a case fails the
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
  AttributeBytes(Struct value) : words_((sizeof value + 7) / 8) {  // not explicit: rooms write the struct itself
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
  not_large,  ///< those and NaN: where finite operands could overflow in one width and not in another
  all,        ///< those, the largest and the smallest normal number
};

/// How an operand is filled.
struct Values {
  double low = -2, high = 2;
  bool whole = false;                    ///< whole numbers in [low, high)
  std::optional<double> sometimes = {};  ///< one element in four has this value
  double gap = 0;                        ///< values are at least this far from 0: kinks and poles
  Special special = Special::none;
};

/// In the place of a dtype: what sums of the dtype under test are kept in, S of ops.def.
inline constexpr tenon_dtype dtype_of_sums = TENON_DTYPE_COUNT;
/// What a spec means where `dtype` is under test.
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
inline const ResultSpec unwanted{{}, TENON_DTYPE_NONE, false};

/// What the answer is compared with.
enum class Oracle {
  widened,     ///< the oracle on the same numbers in f64
  same_dtype,  ///< the oracle on the very same operands: results that depend on the dtype by definition
};

/// The largest error that an answer may have, and why: nobody is held to less than the arithmetic allows, nor to more.
struct Tolerance {
  const char* why = nullptr;                           ///< where the bound comes from, for people: the reference pages print it
  Bound (*of)(const Variant&, tenon_dtype) = nullptr;  ///< NULL: the same bits
  Bound operator()(const Variant& variant, tenon_dtype dtype) const { return of == nullptr ? Bound{} : of(variant, dtype); }
  bool operator==(std::nullptr_t) const { return of == nullptr; }
};

/// Something that is true of every result; empty: it holds.
struct Property {
  std::string name;
  std::string (*broken)(const Variant&, tenon_dtype, const std::vector<Array>& inputs, const std::vector<Array>& outputs);
};

/// Operands and results that were worked out elsewhere.
struct Golden {
  std::string name;
  Variant variant;
  std::vector<std::vector<double>> inputs;   ///< per operand; empty for an absent one
  std::vector<std::vector<double>> outputs;  ///< per result; empty for an unwanted one
  std::vector<tenon_dtype> dtypes = {};      ///< none: all of the case
  Bound (*bound)(tenon_dtype) = nullptr;     ///< where these values are less exact than the op's own bound
};

/// Operands that must be refused when they are read: the status, and words that the text has to contain.
struct BadArgument {
  std::string name;
  Variant variant;
  void (*spoil)(std::vector<Array>& inputs);
  std::vector<std::string> words;
  std::vector<tenon_dtype> dtypes = {};  ///< none: all of the case
};

class Kit;
/// A case of its own under the op's name. Throws Failure, Unsupported or NotRun.
struct Extra {
  std::string name;
  void (*check)(Kit&, tenon_dtype);
};

/// Everything the kit knows about an op.
struct OpCase {
  tenon_op op;
  std::vector<tenon_dtype> dtypes = {};  ///< none: the mandatory ones of ops.def
  std::vector<Variant> variants;
  Tolerance bound = {};
  Oracle oracle = Oracle::widened;
  /// Inputs whose gradients are held against finite differences.
  std::vector<std::size_t> gradient = {};
  /// Ops of which those gradients are made: finite differences judge them as well.
  std::vector<tenon_op> gradient_ops = {};
  /// Results that are there for those ops alone: no gradient flows through them.
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
  const char* room;
  std::uint64_t dtypes;  ///< mandatory
};
const std::vector<OpLine>& op_lines();
const OpLine& line_of(tenon_op op);
std::vector<tenon_dtype> dtypes_of(const OpCase& op_case);

/// Reduced sizes were asked for. Rooms look at it when they list their variants.
bool small_sizes();
void set_small_sizes(bool small);

/// All rooms' cases, in the order of ops.def.
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

/// What the checks of one instance of an op have in common: they follow one another, and are about the same operands.
struct Shared {
  std::string name;
  std::uint64_t seed = 0;
  std::vector<Array> inputs;
  std::optional<std::vector<Array>> dense = {};  ///< what the device under test makes of them, dense and apart
};

/// The device under test, the oracle, and helpers that throw what a case is to report.
class Kit {
 public:
  /// `judge` NULL: the device is the oracle. `with`: what the cases before have left that this one may use.
  Kit(const Device& under_test, const Device* judge, std::uint64_t given_seed, std::shared_ptr<Shared> with = std::make_shared<Shared>())
      : device(under_test), oracle(judge), seed(given_seed), shared(std::move(with)) {}
  const Device& device;
  const Device* const oracle;
  const std::uint64_t seed;
  const std::shared_ptr<Shared> shared;

  /// Runs a Net on the device under test. Throws Unsupported for a no, Failure for anything else that is not a clean result.
  std::vector<Array> run(const Net& net, PlanOptions options = {}, unsigned char poison = 0xFF) const;
  /// The same on the oracle; throws NotRun if the device under test is the oracle itself.
  std::vector<Array> judge(const Net& net) const;

  /// A sentence for the report of a case that passes: what it measured.
  std::string remark;
};

/// How a node is run that differs from the plainest way.
struct Setting {
  std::vector<Layout> layouts = {};        ///< per input
  std::uint32_t kind = TENON_VALUE_INPUT;  ///< of every input
  std::vector<tenon_donation> donations = {};
};
/// A Net of one node. Value i is input i for inputs that are present, in order; outputs follow.
Net net_of(const OpLine& line, const Variant& variant, tenon_dtype dtype, const std::vector<Array>& inputs, const Setting& setting = {});
/// The operands of a variant, filled. Absent ones have TENON_DTYPE_NONE.
std::vector<Array> fill(const Variant& variant, tenon_dtype dtype, std::uint64_t seed);

/// How the process of a case ends.
enum class Ending {
  shut_down,  ///< with that of its group: devices are closed, backends shut down
  exits,      ///< in a process of its own, which calls exit(0) when `run` has returned, with everything still open
};

/// One named case, ready to run.
struct Case {
  std::string name;
  std::string op;     ///< stem, routine, or "core"
  std::string group;  ///< room, signature, or "core": runs in one child process
  tenon_dtype dtype = TENON_DTYPE_NONE;
  bool mandatory = true;
  std::function<void(Kit&)> run;  ///< throws what it is if it is not a pass
  Ending ending = Ending::shut_down;
};
/// From what the rooms say.
std::vector<Case> op_case_list(const std::vector<OpCase>& op_cases);
/// Lifecycle, memory, streams, plans, recordings.
std::vector<Case> core_case_list();
/// Every slot of the socket's tables, and every service of the host, without a case in that list. Empty: there is none.
std::vector<std::string> slot_gaps();
/// The part of it about recordings: for backends that offer them.
std::vector<Case> capture_case_list();
/// The capability table and `supports` held to their word, yes and no, on random instances of every op.
std::vector<Case> honesty_case_list();
/// Models trained on the device and on the oracle. `models`: the folder of model definitions.
std::vector<Case> training_case_list(const std::filesystem::path& models);
/// Every routine of blas.def in every dtype of its line.
std::vector<Case> blas_case_list();
/// Vectors that onnx/convert.py wrote. Errors: tenon::Error for a file that is not theirs.
std::vector<Case> onnx_case_list(const std::filesystem::path& file);

/// Gradients against finite differences, both in f64 on the device under test. Throws what it is if it is not a pass.
void check_gradient(Kit& kit, const OpCase& op_case, const Variant& variant, std::uint64_t seed);

}  // namespace tenon::conformance
