// SPDX-License-Identifier: Apache-2.0
#include "graph/vendor_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <type_traits>
#include <utility>

#include <tenon/error.h>
#include <tenon/sdk/shared_mutex.h>
#include <tenon/sdk/vendor_schema.h>
#include <tenon/vendor_ops.h>

#include "text/counted.h"
#include "yaml/suggest.h"

namespace tenon::graph {
namespace {

using Attribute = sdk::VendorSchema::Attribute;

/// A backend that has an op.
struct Provider {
  std::string backend;
  decltype(tenon_vendor_op::infer) infer = nullptr;
};
struct Known {
  VendorOp op;
  std::string declaration;  ///< its schema as declared first
  sdk::VendorSchema schema;
  OpLine line;
  std::map<std::uint64_t, Provider> providers;  ///< by the number of their declarations
};

/// Every op that was declared since the process began: its id is TENON_OP_VENDOR plus its index.
struct Registry {
  sdk::SharedMutex calls;  ///< shared while a rule for shapes is called, so that its library stays
  std::mutex mutex;        ///< guards the rest; of both, `calls` is locked first
  std::deque<Known> ops;
  std::uint64_t last_number = 0;

  Known* find(tenon_op op) {
    const std::size_t index = op - std::size_t{TENON_OP_VENDOR};
    return op >= TENON_OP_VENDOR && index < ops.size() ? &ops[index] : nullptr;
  }
  Known* find(std::string_view domain, std::string_view name, std::uint32_t version) {
    const auto found = std::find_if(ops.begin(), ops.end(),
                                    [&](const Known& k) { return k.op.domain == domain && k.op.name == name && k.op.version == version; });
    return found == ops.end() ? nullptr : &*found;
  }
};
/// Never destroyed: backends may end after static objects.
Registry& registry() {
  static Registry* const all = new Registry;
  return *all;
}

std::string with_version(const VendorOp& op) {
  return fmt::format("{}-{}", op.full_name, op.version);
}

// ---------------------------------------------------------------- attributes

/// Points into the value.
tenon_attribute attribute_of(const char* name, const AttributeValue& value) {
  tenon_attribute attribute{};
  attribute.name = name;
  attribute.type = static_cast<std::uint32_t>(value.index()) + 1;
  std::visit(
      [&]<class T>(const T& x) {
        if constexpr (std::is_arithmetic_v<T>) {
          attribute.count = 1;
          attribute.data = &x;
        } else {
          attribute.count = static_cast<std::uint32_t>(x.size());
          attribute.data = x.empty() ? nullptr : x.data();
        }
      },
      value);
  return attribute;
}

template <class T>
std::vector<T> list_of(const tenon_attribute& attribute) {
  const T* const first = static_cast<const T*>(attribute.data);
  return attribute.count == 0 ? std::vector<T>() : std::vector<T>(first, first + attribute.count);
}

AttributeValue value_of(const tenon_attribute& attribute) {
  switch (attribute.type) {
    case TENON_ATTRIBUTE_INTEGER:
      return *static_cast<const std::int64_t*>(attribute.data);
    case TENON_ATTRIBUTE_FLOAT:
      return *static_cast<const double*>(attribute.data);
    case TENON_ATTRIBUTE_STRING:
      return attribute.count == 0 ? std::string() : std::string(static_cast<const char*>(attribute.data), attribute.count);
    case TENON_ATTRIBUTE_INTEGERS:
      return list_of<std::int64_t>(attribute);
    case TENON_ATTRIBUTE_FLOATS:
      return list_of<double>(attribute);
    default:
      throw Error(fmt::format("attribute '{}': expected one of the types TENON_ATTRIBUTE_*, got {}", attribute.name, attribute.type));
  }
}

AttributeValues values_of(const tenon_attributes_vendor& attributes) {
  AttributeValues values;
  for (std::uint32_t i = 0; i < attributes.count; ++i) values[attributes.attributes[i].name] = value_of(attributes.attributes[i]);
  return values;
}

std::string str(const AttributeValue& value) {
  return std::visit(
      []<class T>(const T& x) {
        if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
          return fmt::format("{}", x);
        } else {
          return fmt::format("({})", fmt::join(x, ","));
        }
      },
      value);
}

/// The value as the type of an attribute.
AttributeValue converted(const std::string& op, const Attribute& attribute, const AttributeValue& value) {
  if (value.index() == attribute.type - 1) return value;
  if (const auto* integer = std::get_if<std::int64_t>(&value); integer != nullptr && attribute.type == TENON_ATTRIBUTE_FLOAT) {
    return static_cast<double>(*integer);
  }
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value);
      integers != nullptr && attribute.type == TENON_ATTRIBUTE_FLOATS) {
    return std::vector<double>(integers->begin(), integers->end());
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&value);
      numbers != nullptr && numbers->empty() && attribute.type == TENON_ATTRIBUTE_INTEGERS) {
    return std::vector<std::int64_t>();
  }
  throw Error(fmt::format("{}: attribute '{}': expected a value of type {}, got {} of type {}", op, attribute.name,
                          sdk::attribute_type_name(attribute.type), str(value),
                          sdk::attribute_type_name(static_cast<std::uint32_t>(value.index()) + 1)));
}

/// All attributes of the schema in its order, with defaults for those that are not given.
Attributes completed(const Known& known, const AttributeValues& given) {
  const std::string& op = known.op.full_name;
  std::vector<std::string> names;
  for (const Attribute& attribute : known.schema.attributes) names.push_back(attribute.name);
  for (const auto& [name, value] : given) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw Error(fmt::format("{}: unknown attribute '{}'{}; it has {}", op, name, yaml::did_you_mean(name, names),
                            names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  std::deque<AttributeValue> values;
  std::vector<tenon_attribute> list;
  for (const Attribute& attribute : known.schema.attributes) {
    const auto found = given.find(attribute.name);
    if (found == given.end() && !attribute.default_value) {
      throw Error(fmt::format("{}: attribute '{}' is missing, expected a value of type {}", op, attribute.name,
                              sdk::attribute_type_name(attribute.type)));
    }
    values.push_back(found == given.end() ? *attribute.default_value : converted(op, attribute, found->second));
    list.push_back(attribute_of(attribute.name.c_str(), values.back()));
  }
  return interned({sizeof(tenon_attributes_vendor), static_cast<std::uint32_t>(list.size()), list.data()});
}

/// A list of attributes and what it points to.
struct Block {
  std::deque<std::string> names;
  std::deque<AttributeValue> values;
  std::vector<tenon_attribute> attributes;
};

// ---------------------------------------------------------------- the rule for shapes

std::vector<tenon_tensor_desc> operands_of(const Inference& at, const Known& known) {
  const auto& rules = known.schema.operands;
  if (at.input_count() > rules.size())
    at.fail(fmt::format("expected at most {}, got {}", counted(rules.size(), "operand"), at.input_count()));
  std::vector<tenon_tensor_desc> operands(rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (at.has(i)) {
      const Shape& shape = at.shape(i);
      operands[i] = {shape.data(), nullptr, static_cast<std::uint32_t>(shape.rank()), static_cast<tenon_dtype>(at.dtype(i))};
    } else if (!rules[i].optional) {
      at.fail(fmt::format("operand {} is absent, expected '{}'", rules[i].name, known.op.schema));
    }
  }
  return operands;
}

void set_result(Inference& at, const std::string& backend, const tenon_vendor_result& result) {
  bool valid = result.dtype >= TENON_DTYPE_F16 && result.dtype <= TENON_DTYPE_BOOL && result.rank <= TENON_MAX_RANK;
  for (std::uint32_t d = 0; valid && d < result.rank; ++d) valid = result.shape[d] >= 0;
  if (!valid) {
    at.fail(fmt::format("backend '{}' gives result {} the dtype {} and the rank {}, or a negative dimension: report this to its vendor",
                        backend, at.outputs.size(), result.dtype, result.rank));
  }
  at.output(static_cast<DType>(result.dtype), Shape(std::span<const std::int64_t>(result.shape, result.rank)));
}

/// What is known of an op; only its providers change. NULL: nothing.
const Known* find_known(tenon_op op) {
  const std::lock_guard lock(registry().mutex);
  return registry().find(op);
}

/// A loaded backend that has the op; without a rule if there is none.
Provider provider_of(const Known& known) {
  const std::lock_guard lock(registry().mutex);
  return known.providers.empty() ? Provider() : known.providers.begin()->second;
}

void infer_vendor_op(Inference& at) {
  const Known& known = *find_known(at.op());
  const std::shared_lock library_stays(registry().calls);
  const Provider provider = provider_of(known);
  if (provider.infer == nullptr) at.fail("the backend that has this op was unloaded");
  const std::vector<tenon_tensor_desc> operands = operands_of(at, known);
  at.attributes = completed(known, values_of(at.attributes.as<tenon_attributes_vendor>()));
  std::vector<tenon_vendor_result> results(known.schema.results.size());
  char text[512] = "";
  tenon_error error{sizeof(tenon_error), TENON_OK, 0, text, sizeof text, 0};
  tenon_status status = TENON_INTERNAL;
  try {
    status = provider.infer(operands.data(), static_cast<std::uint32_t>(operands.size()), &at.attributes.as<tenon_attributes_vendor>(),
                            results.data(), static_cast<std::uint32_t>(results.size()), &error);
  } catch (...) {
    at.fail(fmt::format("backend '{}' threw an exception from its rule for shapes: report this to its vendor", provider.backend));
  }
  text[sizeof text - 1] = '\0';
  if (status != TENON_OK) {
    at.fail(text[0] != '\0' ? text : fmt::format("backend '{}' refuses these operands and gives no reason", provider.backend));
  }
  for (const tenon_vendor_result& result : results) set_result(at, provider.backend, result);
}

const OpRules vendor_rules{
    .doc = "An op of a backend's vendor.",
    .infer = infer_vendor_op,
    .precision = PrecisionClass::fp32,
    .flops = per_element<0>,
};

void add(Registry& all, const tenon_vendor_op& declared, sdk::VendorSchema schema) {
  Known& known = all.ops.emplace_back();
  VendorOp& op = known.op;
  op.domain = declared.domain;
  op.name = declared.name;
  op.full_name = sdk::full_name(declared);
  op.version = declared.version;
  op.schema = schema.str();
  known.declaration = declared.schema;
  known.schema = std::move(schema);
  // The operand whose dtype stands for the node's is one that is always present.
  int type_operand = -1;
  for (std::size_t i = known.schema.operands.size(); i-- > 0;) {
    if (!known.schema.operands[i].optional) type_operand = static_cast<int>(i);
  }
  known.line = {static_cast<tenon_op>(TENON_OP_VENDOR + all.ops.size() - 1),
                op.full_name.c_str(),
                op.version,
                op.full_name.c_str(),
                type_operand,
                "vendor",
                sizeof(tenon_attributes_vendor),
                Indexing::other,
                op.schema.c_str()};
  op.entry = {&known.line, &vendor_rules};
}

}  // namespace

// ---------------------------------------------------------------- declarations

VendorOpDeclarations::VendorOpDeclarations(const std::string& backend, std::span<const tenon_vendor_op> ops) {
  if (ops.empty()) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  number_ = ++all.last_number;
  for (const tenon_vendor_op& declared : ops) {
    sdk::VendorSchema schema = sdk::VendorSchema::parse(declared.schema);
    Known* known = all.find(declared.domain, declared.name, declared.version);
    if (known == nullptr) {
      add(all, declared, std::move(schema));
      known = &all.ops.back();
    } else if (!(known->schema == schema)) {
      conflicts_.push_back(
          fmt::format("its op {} is not used: another backend, or an earlier build of this one, declares the same version with the schema "
                      "'{}', and this one with '{}'; a changed schema needs another version",
                      with_version(known->op), known->declaration, declared.schema));
      continue;
    }
    known->providers[number_] = {backend, declared.infer};
    own_ids_[known->line.op] = declared.id;
  }
}

VendorOpDeclarations::VendorOpDeclarations(VendorOpDeclarations&& other) noexcept
    : number_(std::exchange(other.number_, 0)), own_ids_(std::move(other.own_ids_)), conflicts_(std::move(other.conflicts_)) {}

VendorOpDeclarations& VendorOpDeclarations::operator=(VendorOpDeclarations&& other) noexcept {
  end();
  number_ = std::exchange(other.number_, 0);
  own_ids_ = std::move(other.own_ids_);
  conflicts_ = std::move(other.conflicts_);
  return *this;
}

std::optional<tenon_op> VendorOpDeclarations::own_id(tenon_op op) const {
  const auto found = own_ids_.find(op);
  return found == own_ids_.end() ? std::nullopt : std::optional(found->second);
}

void VendorOpDeclarations::end() {
  if (number_ == 0) return;
  Registry& all = registry();
  const std::scoped_lock lock(all.calls, all.mutex);
  for (Known& known : all.ops) known.providers.erase(number_);
  number_ = 0;
}

const VendorOp* find_vendor_op(tenon_op op) {
  const Known* const known = find_known(op);
  return known == nullptr ? nullptr : &known->op;
}

const VendorOp* find_vendor_op(std::string_view domain, std::string_view name, std::uint32_t version) {
  const std::lock_guard lock(registry().mutex);
  const Known* best = nullptr;
  const auto rank_of = [](const Known& known) { return std::pair(!known.providers.empty(), known.op.version); };
  for (const Known& known : registry().ops) {
    if (known.op.domain != domain || known.op.name != name || (version != 0 && known.op.version != version)) continue;
    if (best == nullptr || rank_of(known) > rank_of(*best)) best = &known;
  }
  return best == nullptr ? nullptr : &best->op;
}

std::vector<std::string> backends_with(tenon_op op) {
  const std::lock_guard lock(registry().mutex);
  std::vector<std::string> names;
  if (const Known* const known = registry().find(op)) {
    for (const auto& [number, provider] : known->providers) {
      if (std::find(names.begin(), names.end(), provider.backend) == names.end()) names.push_back(provider.backend);
    }
  }
  return names;
}

// ---------------------------------------------------------------- attributes

Attributes interned(const tenon_attributes_vendor& attributes) {
  static std::mutex mutex;
  static auto* const blocks = new std::map<std::string, Block>;  // never destroyed: graphs may be used after static objects
  std::string key;
  const auto append = [&](const void* bytes, std::size_t size) { key.append(static_cast<const char*>(bytes), size); };
  for (std::uint32_t i = 0; i < attributes.count; ++i) {
    const tenon_attribute& attribute = attributes.attributes[i];
    append(attribute.name, std::strlen(attribute.name) + 1);
    append(&attribute.type, sizeof attribute.type);
    append(&attribute.count, sizeof attribute.count);
    const std::size_t element = attribute.type == TENON_ATTRIBUTE_STRING ? 1 : 8;
    if (attribute.count > 0) append(attribute.data, attribute.count * element);
  }
  const std::lock_guard lock(mutex);
  const auto [found, inserted] = blocks->try_emplace(std::move(key));
  Block& block = found->second;
  for (std::uint32_t i = 0; inserted && i < attributes.count; ++i) {
    block.names.emplace_back(attributes.attributes[i].name);
    block.values.push_back(value_of(attributes.attributes[i]));
    block.attributes.push_back(attribute_of(block.names.back().c_str(), block.values.back()));
  }
  return Attributes::of<tenon_attributes_vendor>({sizeof(tenon_attributes_vendor), attributes.count, block.attributes.data()});
}

std::string vendor_attributes_str(const tenon_attributes_vendor& attributes) {
  std::string text;
  for (std::uint32_t i = 0; i < attributes.count; ++i) {
    text += fmt::format(" {}={}", attributes.attributes[i].name, str(value_of(attributes.attributes[i])));
  }
  return text;
}

}  // namespace tenon::graph

namespace tenon {
namespace {

/// "SoftClip-1 (example), SoftClip-2": the ops of a domain, with the loaded backends that have them.
std::string ops_of_domain(std::string_view domain, std::vector<std::string>& out_names) {
  std::string text;
  for (tenon_op op = TENON_OP_VENDOR; const graph::VendorOp* known = graph::find_vendor_op(op); ++op) {
    if (known->domain != domain) continue;
    out_names.push_back(known->full_name);
    const std::vector<std::string> backends = graph::backends_with(op);
    text += fmt::format("{}{}-{}{}", text.empty() ? "" : ", ", known->name, known->version,
                        backends.empty() ? "" : fmt::format(" ({})", fmt::join(backends, ", ")));
  }
  return text;
}

constexpr const char* how_to_load =
    "load the plugin that has it: name its file or folder in TENON_BACKEND_PATH, in backends.search of tenon.yaml or in the Context's "
    "plugins; if backends.use is set, it has to name the backend";

}  // namespace

Attributes Attributes::of(const tenon_attributes_vendor& attributes) {
  return graph::interned(attributes);
}

tenon_op vendor_op(const std::string& name, std::uint32_t version) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) throw Error(fmt::format("op '{}': expected '<domain>.<name>', as in com.example.SoftClip", name));
  const std::string domain = name.substr(0, dot);
  const graph::VendorOp* const known = graph::find_vendor_op(domain, name.substr(dot + 1), version);
  const std::string shown = version == 0 ? name : fmt::format("{}-{}", name, version);
  if (known == nullptr) {
    std::vector<std::string> names;
    const std::string others = ops_of_domain(domain, names);
    const bool is_misspelt = std::find(names.begin(), names.end(), name) == names.end();  // else there are other versions
    throw Error(Status::unsupported,
                fmt::format("op {}: no loaded backend has it{}; ops of {}: {}; {}", shown,
                            is_misspelt ? yaml::did_you_mean(name, names) : "", domain, others.empty() ? "none" : others, how_to_load));
  }
  const tenon_op op = known->entry.line->op;
  if (graph::backends_with(op).empty()) {
    throw Error(Status::unsupported, fmt::format("op {}: the backend that has it was unloaded; {}", shown, how_to_load));
  }
  return op;
}

Attributes vendor_attributes(tenon_op op, const AttributeValues& values) {
  const graph::Known* const known = graph::find_known(op);
  if (known == nullptr) throw Error(fmt::format("vendor_attributes: expected an id that vendor_op returned, got {}", op));
  return graph::completed(*known, values);
}

namespace ops {

std::vector<Value> call(const std::string& name, const std::vector<Value>& inputs, const AttributeValues& attributes,
                        std::uint32_t version) {
  const tenon_op op = vendor_op(name, version);
  const Attributes complete = vendor_attributes(op, attributes);
  for (const Value& value : inputs) {
    if (value.present()) return value.graph().apply(op, inputs, complete);
  }
  throw Error(fmt::format("{}: expected at least one operand, got none", name));
}

}  // namespace ops
}  // namespace tenon
