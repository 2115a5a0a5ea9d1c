// SPDX-License-Identifier: Apache-2.0
#include "case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <tenon/sdk/kernel.h>

namespace tenon::conformance {
namespace {
Effort current_effort = Effort::usual;
bool f64_present = true;
}  // namespace

const std::vector<OpLine>& op_lines() {
  static const std::vector<OpLine> lines{
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  {id, version, #name, #stem, #family, dtypes},
#include <tenon/ops.def>
#undef TENON_OP
  };
  return lines;
}

const OpLine& line_of(tenon_op op) {
  for (const OpLine& line : op_lines()) {
    if (line.op == op) return line;
  }
  throw std::logic_error(fmt::format("op {} is not in ops.def", op));
}

std::vector<tenon_dtype> dtypes_of(const OpCase& op_case) {
  if (!op_case.dtypes.empty()) return op_case.dtypes;
  std::vector<tenon_dtype> result;
  for (tenon_dtype t = 1; t < TENON_DTYPE_COUNT; ++t) {
    if ((line_of(op_case.op).dtypes & TENON_DTYPE_BIT(t)) != 0) result.push_back(t);
  }
  return result;
}

Effort effort() {
  return current_effort;
}
bool has_f64() {
  return f64_present;
}
void set_f64(bool computes_with_f64) {
  f64_present = computes_with_f64;
}
void set_effort(Effort effort) {
  current_effort = effort;
}

std::vector<Array> CaseContext::run(const Net& net, PlanOptions options, unsigned char poison) const {
  const Plan plan(device, net, options);
  if (!plan.failure().empty()) throw Failure(plan.failure());
  if (plan.refused()) throw Unsupported(plan.why());
  Outcome outcome = plan.run(poison);
  if (!outcome.ok()) throw Failure(fmt::format("execution failed with {}: {}", status_name(outcome.status), outcome.text));
  if (!outcome.damage.empty()) throw Failure("the execution " + outcome.damage);
  return std::move(outcome.outputs);
}

std::vector<Array> CaseContext::judge(const Net& net) const {
  if (oracle == nullptr) throw NotRun("this backend is the oracle: golden vectors and finite differences judge it, not itself");
  const Plan plan(*oracle, net);
  if (!plan.ready()) throw Failure("the oracle does not support it: " + plan.why());
  Outcome outcome = plan.run();
  if (!outcome.ok()) throw Failure("the oracle failed: " + outcome.text);
  return std::move(outcome.outputs);
}

tenon_dtype resolved(tenon_dtype spec, tenon_dtype dtype) {
  if (spec == dtype_of_rates) return has_f64() ? tenon_dtype{TENON_DTYPE_F64} : tenon_dtype{TENON_DTYPE_F32};
  if (spec == dtype_of_sums) return is_narrow(dtype) ? tenon_dtype{TENON_DTYPE_F32} : dtype;
  return spec == TENON_DTYPE_NONE ? dtype : spec;
}

Net net_of(const OpLine& line, const Variant& variant, tenon_dtype dtype, const std::vector<Array>& inputs, const Setting& setting) {
  Net net;
  std::vector<std::uint32_t> ins, outs;
  for (std::size_t i = 0; i < variant.inputs.size(); ++i) {
    const bool present = variant.inputs[i].present;
    ins.push_back(present ? net.input(inputs[i], i < setting.layouts.size() ? setting.layouts[i] : Layout{}, setting.kind)
                          : TENON_NO_INDEX);
  }
  for (const ResultSpec& out : variant.outputs) {
    outs.push_back(out.present ? net.output(resolved(out.dtype, dtype), out.shape) : TENON_NO_INDEX);
  }
  for (const tenon_donation& d : setting.donations) net.donate(ins[d.input], outs[d.output]);
  AttributeBytes attributes = variant.attributes;
  const bool random = std::strcmp(line.family, "random") == 0 || line.op == TENON_OP_Dropout;
  if (random) static_cast<tenon_attributes_random*>(attributes.data())->dtype = dtype;
  if (line.op == TENON_OP_OneHot) {
    static_cast<tenon_attributes_one_hot*>(attributes.data())->dtype = resolved(variant.outputs[0].dtype, dtype);
  }
  net.node(line.op, line.version, attributes.data(), ins, outs);
  return net;
}

namespace {

/// An integer next to a power of two that 32 bits, an f32 or an f64 does not hold; its low bits in narrower types, but no 0.
void put_large_integer(Array& array, std::int64_t i, Random& random) {
  constexpr int exponents[] = {24, 31, 32, 53, 63};
  std::uint64_t value =
      (std::uint64_t{1} << exponents[random.integer(0, std::size(exponents))]) + static_cast<std::uint64_t>(random.integer(-1, 2));
  if (random.integer(0, 4) == 0) value = ~value + 1;
  std::memcpy(array.bytes() + i * array.element_size(), &value, static_cast<std::size_t>(array.element_size()));  // little-endian
  if (array.at(i) == 0) array.set(i, 1);
}

}  // namespace

std::vector<Array> fill(const Variant& variant, tenon_dtype dtype, std::uint64_t seed) {
  Random random(seed);
  std::vector<Array> result;
  for (const OperandSpec& spec : variant.inputs) {
    if (!spec.present) {
      result.emplace_back();
      continue;
    }
    const tenon_dtype type = resolved(spec.dtype, dtype);
    Array array(type, spec.shape);
    const Values& values = spec.values;
    const bool is_unsigned = type >= TENON_DTYPE_U8 && type <= TENON_DTYPE_U64;
    for (std::int64_t i = 0; i < array.count(); ++i) {
      if (type == TENON_DTYPE_BOOL) {
        array.put<std::uint8_t>(i, static_cast<std::uint8_t>(random.bits() & 1));
      } else if (!is_float(type) && spec.dtype == TENON_DTYPE_NONE && values.special != Special::none && random.integer(0, 4) == 0) {
        put_large_integer(array, i, random);
      } else if (values.sometimes && random.integer(0, 4) == 0) {
        array.set(i, *values.sometimes);
      } else if (values.whole || !is_float(type)) {
        const double low = is_unsigned ? std::max(values.low, 0.0) : values.low;
        const auto random_integer = [&] {
          return static_cast<double>(random.integer(static_cast<std::int64_t>(low), static_cast<std::int64_t>(values.high)));
        };
        double value = random_integer();
        while (std::fabs(value) < values.gap) value = random_integer();
        array.set(i, value);
      } else {
        // The numbers within the gap are left out of the range, not drawn again: a gap may be nearly all of it.
        const double left_out = std::max(0.0, std::min(values.high, values.gap) - std::max(values.low, -values.gap));
        const double value = random.uniform(values.low, values.high - left_out);
        array.set(i, value > -values.gap ? value + left_out : value);
      }
    }
    result.push_back(std::move(array));
  }
  return result;
}

}  // namespace tenon::conformance
