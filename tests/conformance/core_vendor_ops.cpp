// SPDX-License-Identifier: Apache-2.0
// The ops that the backend's vendor defines: their rules for dtypes and shapes, and what becomes of their nodes.
#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/vendor_schema.h>

#include "core.h"
#include "loader/vendor_ops.h"

namespace tenon::conformance {
namespace {

std::span<const tenon_vendor_op> declared(const CaseContext& context) {
  const auto ops = loader::vendor_ops_of(context.device.info());
  if (ops.empty()) throw NotRun("not offered: the backend declares no ops of its own");
  return ops;
}

std::string name_of(const tenon_vendor_op& op) {
  return fmt::format("{}.{}-{}", op.domain, op.name, op.version);
}

/// An op with attributes: the schema's defaults, else 1, 1.0 and empty texts and lists. Not copyable: it points into itself.
class Sample {
 public:
  explicit Sample(const tenon_vendor_op& declared_op) : op(declared_op), schema(sdk::VendorSchema::parse(declared_op.schema)) {
    for (const sdk::VendorSchema::Attribute& attribute : schema.attributes) {
      values_.push_back(attribute.default_value ? *attribute.default_value : value_of(attribute.type));
      list_.push_back(std::visit([&]<class T>(const T& x) { return attribute_of(attribute, x); }, values_.back()));
    }
    attributes = {sizeof attributes, static_cast<std::uint32_t>(list_.size()), list_.data()};
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  const tenon_vendor_op& op;
  const sdk::VendorSchema schema;
  tenon_attributes_vendor attributes{};

 private:
  static sdk::AttributeValue value_of(std::uint32_t type) {
    switch (type) {
      case TENON_ATTRIBUTE_INTEGER:
        return std::int64_t{1};
      case TENON_ATTRIBUTE_FLOAT:
        return 1.0;
      case TENON_ATTRIBUTE_STRING:
        return std::string();
      case TENON_ATTRIBUTE_INTEGERS:
        return std::vector<std::int64_t>();
      default:
        return std::vector<double>();
    }
  }
  template <class T>
  static tenon_attribute attribute_of(const sdk::VendorSchema::Attribute& attribute, const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return {attribute.name.c_str(), &value, attribute.type, 1};
    } else {
      return {attribute.name.c_str(), value.empty() ? nullptr : value.data(), attribute.type, static_cast<std::uint32_t>(value.size())};
    }
  }
  std::deque<sdk::AttributeValue> values_;
  std::vector<tenon_attribute> list_;
};

/// The dtype and shape of all operands; those of an index are absent.
struct Operands {
  tenon_dtype dtype = TENON_DTYPE_F32;
  Dims shape = {4, 3};
  std::optional<std::size_t> absent = {};
};

std::vector<tenon_tensor_desc> descs_of(const Sample& sample, const Operands& operands) {
  std::vector<tenon_tensor_desc> descs(sample.schema.operands.size());
  for (std::size_t i = 0; i < descs.size(); ++i) {
    if (operands.absent == i) continue;
    descs[i] = {operands.shape.data(), nullptr, static_cast<std::uint32_t>(operands.shape.size()), operands.dtype};
  }
  return descs;
}

bool same(const tenon_vendor_result& a, const tenon_vendor_result& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::equal(a.shape, a.shape + std::min(a.rank, TENON_MAX_RANK), b.shape);
}

/// The results of the rule; empty if it refuses the operands, with a text.
std::vector<tenon_vendor_result> infer(const Sample& sample, const Operands& operands, const std::string& what) {
  const std::string where = fmt::format("`infer` of {} for {}", name_of(sample.op), what);
  const std::vector<tenon_tensor_desc> descs = descs_of(sample, operands);
  const auto operand_count = static_cast<std::uint32_t>(descs.size()), count = static_cast<std::uint32_t>(sample.schema.results.size());
  std::vector<tenon_vendor_result> results(count + 1);  // one more than it has
  std::memset(static_cast<void*>(results.data()), 0x7E, results.size() * sizeof results[0]);
  const std::vector<tenon_vendor_result> before = results;
  ErrorText error;
  const tenon_status status = sample.op.infer(descs.data(), operand_count, &sample.attributes, results.data(), count, error);
  if (std::memcmp(&results.back(), &before.back(), sizeof before.back()) != 0) fail(where + " wrote more results than the schema has");
  const tenon_status unexplained = sample.op.infer(descs.data(), operand_count, &sample.attributes, results.data(), count, nullptr);
  if (unexplained != status)
    fail(fmt::format("{} returned {}, and {} without a tenon_error", where, status_name(status), status_name(unexplained)));
  results.pop_back();
  if (status != TENON_OK) {
    expect_refusal(status, error, {TENON_INVALID_ARGUMENT, TENON_UNSUPPORTED}, where);
    if (std::memcmp(results.data(), before.data(), count * sizeof before[0]) != 0) fail(where + " failed and wrote its results");
    return {};
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const tenon_vendor_result& result = results[i];
    if (result.dtype == TENON_DTYPE_NONE || result.dtype >= TENON_DTYPE_COUNT) {
      fail(fmt::format("{} returned OK and gave result {} the unknown dtype {}", where, i, result.dtype));
    }
    if (result.rank > TENON_MAX_RANK) fail(fmt::format("{} gave result {} the rank {}", where, i, result.rank));
    if (std::any_of(result.shape, result.shape + result.rank, [](std::int64_t d) { return d < 0; })) {
      fail(fmt::format("{} gave result {} a negative dimension", where, i));
    }
  }
  std::vector<tenon_vendor_result> again(count);
  sample.op.infer(descs.data(), operand_count, &sample.attributes, again.data(), count, error);
  if (!std::equal(results.begin(), results.end(), again.begin(), same)) fail(where + " gave other results the second time");
  return results;
}

/// Any operands: results that the schema has, or a refusal with a text.
void rules(CaseContext& context) {
  for (const tenon_vendor_op& op : declared(context)) {
    const Sample sample(op);
    const Dims huge(TENON_MAX_RANK, std::int64_t{1} << 40);
    infer(sample, {}, "f32(4,3)");
    infer(sample, {.dtype = TENON_DTYPE_F64}, "f64(4,3)");
    infer(sample, {.dtype = TENON_DTYPE_BOOL, .shape = {2}}, "bool(2)");
    infer(sample, {.shape = {}}, "a scalar");
    infer(sample, {.shape = {0, 3}}, "operands without elements");
    infer(sample, {.shape = huge}, "dimensions whose product exceeds 64 bits");
    infer(sample, {.dtype = 4000}, "a dtype that does not exist");
    for (std::size_t i = 0; i < sample.schema.operands.size(); ++i) {
      const std::vector<tenon_vendor_result> results = infer(sample, {.absent = i}, "an absent operand");
      if (!results.empty() && !sample.schema.operands[i].optional) {
        fail(fmt::format("`infer` of {} takes {} for absent, although the schema does not", name_of(op), sample.schema.operands[i].name));
      }
    }
  }
}

/// A node of the op on these operands, whose results the rule states.
Net net_of(const Sample& sample, const Operands& operands, const std::vector<tenon_vendor_result>& results) {
  Net net;
  std::vector<std::uint32_t> inputs, outputs;
  for (std::size_t i = 0; i < sample.schema.operands.size(); ++i) {
    Array values(operands.dtype, operands.shape);
    for (std::int64_t e = 0; e < values.count(); ++e) values.set(e, static_cast<double>(e % 5 - 2));
    inputs.push_back(net.input(std::move(values)));
  }
  for (const tenon_vendor_result& result : results) {
    outputs.push_back(net.output(result.dtype, Dims(result.shape, result.shape + result.rank)));
  }
  net.node(sample.op.id, sample.op.version, &sample.attributes, std::move(inputs), std::move(outputs));
  return net;
}

void expect_no(const CaseContext& context, const Net& net, const std::string& what) {
  const Plan plan(context.device, net);
  if (plan.ready()) fail(what + ": expected a no from `supports`, got a yes");
  if (!plan.failure().empty()) fail(what + ": " + plan.failure());
}

/// `supports` keeps its word, and sees results of other shapes, missing attributes and versions that were not declared. An op of which no
/// node ran is named with the reason.
void nodes(CaseContext& context) {
  std::string not_run;
  for (const tenon_vendor_op& op : declared(context)) {
    const Sample sample(op);
    bool taken = false;
    std::string why = "`infer` takes no dense operands of f32, f64 or i64 of the shape (4,3) that the device computes with";
    for (const tenon_dtype dtype : {TENON_DTYPE_F32, TENON_DTYPE_F64, TENON_DTYPE_I64}) {
      const Operands operands{.dtype = dtype};
      if (!context.device.computes_with(dtype)) continue;
      std::vector<tenon_vendor_result> results = infer(sample, operands, "operands of shape (4,3)");
      if (results.empty()) continue;
      const Net net = net_of(sample, operands, results);
      if (!context.device.computes_with(net)) continue;
      const std::string what = fmt::format("a node of {}", name_of(op));
      const Plan plan(context.device, net);
      if (!plan.failure().empty()) fail(what + ": " + plan.failure());
      if (plan.refused()) {
        why = fmt::format("`infer` takes {}(4,3), but `supports` refuses: {}", sdk::name_of(dtype), plan.why());
        continue;
      }
      const Outcome outcome = plan.run();
      if (!outcome.ok()) fail(fmt::format("{} failed with {}: {}", what, status_name(outcome.status), outcome.text));
      if (!outcome.damage.empty()) fail(fmt::format("{} {}", what, outcome.damage));
      taken = true;

      Net another_version = net_of(sample, operands, results);
      another_version.nodes[0].version = 4711;
      expect_no(context, another_version, what + " in version 4711");
      if (!sample.schema.attributes.empty()) {
        Net without_attributes = net_of(sample, operands, results);
        const tenon_attributes_vendor none{sizeof none, 0, nullptr};
        std::memcpy(without_attributes.nodes[0].attributes.data(), &none, sizeof none);
        expect_no(context, without_attributes, what + " without its attributes");
      }
      if (results[0].rank < TENON_MAX_RANK) {
        results[0].shape[results[0].rank++] = 2;
        expect_no(context, net_of(sample, operands, results), what + " with a result of another shape");
      }
    }
    if (!taken) not_run += fmt::format("{}{}: {}", not_run.empty() ? "" : "; ", name_of(op), why);
  }
  if (!not_run.empty()) throw NotRun("no node ran of " + not_run);
}

/// An id that the backend does not declare is a no, whatever the node looks like.
void undeclared(CaseContext& context) {
  tenon_op id = TENON_OP_VENDOR + 4711;
  for (const tenon_vendor_op& op : loader::vendor_ops_of(context.device.info())) id = std::max(id, op.id + 1);
  const tenon_attributes_vendor none{sizeof none, 0, nullptr};
  for (const tenon_dtype dtype : {TENON_DTYPE_F32, TENON_DTYPE_I64}) {
    if (!context.device.computes_with(dtype)) continue;
    Net net;
    const std::uint32_t x = net.input(Array(dtype, {16})), y = net.output(dtype, {16});
    net.node(id, 1, &none, {x}, {y});
    expect_no(context, net, fmt::format("a node of op {}, which the backend does not declare", id));
  }
  expect_sane(context);
}

}  // namespace

std::vector<Case> core_vendor_op_cases() {
  return core_cases({
      {"vendor_ops/infer", rules},
      {"vendor_ops/nodes", nodes},
      {"vendor_ops/undeclared", undeclared},
  });
}

}  // namespace tenon::conformance
