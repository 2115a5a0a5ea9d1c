// SPDX-License-Identifier: Apache-2.0
#include "onnx/importer.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include <tenon/error.h>
#include <tenon/vendor_ops.h>

#include "core/log.h"
#include "exec/immediate.h"
#include "exec/oracle.h"
#include "graph/vendor_ops.h"
#include "io/limits.h"

namespace tenon::onnx {
namespace {

/// Larger operands are not evaluated on the host unless a rule asks for their elements.
constexpr std::int64_t max_host_elements = std::int64_t{1} << 16;
/// Inputs that may be specialised.
constexpr std::int64_t max_specialised_elements = 64;
/// Of recipes that depend on each other, since they are evaluated recursively.
constexpr int max_recipe_depth = 2000;
/// Of functions and subgraphs in each other.
constexpr int max_depth = 128;

/// Ends a rule whose subgraph has a node that cannot be imported.
struct Failed {};

/// Ends the rule of a node whose bodies cannot be a part of the graph, because of computed elements.
struct BodiesNeeded {
  std::string problem;
};

/// Sets a variable until the end of a block.
template <class T>
class Restore {
 public:
  Restore(T& variable, T value) : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~Restore() { variable_ = std::move(before_); }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& variable_;
  T before_;
};

template <class Test>
bool all_tensors(const std::vector<Operand>& operands, const Test& test) {
  return std::ranges::all_of(operands, [&](const Operand& operand) {
    if (operand.kind == Operand::Kind::list) return all_tensors(operand.list, test);
    return operand.is_absent() || test(operand);
  });
}

std::int64_t count_elements(const std::vector<Operand>& operands) {
  std::int64_t count = 0;
  for (const Operand& operand : operands) {
    if (operand.kind == Operand::Kind::list) count += count_elements(operand.list);
    if (operand.kind == Operand::Kind::tensor) count += operand.shape().count();
  }
  return count;
}

/// The inputs of the model that a value depends on.
void collect_inputs(const Operand& operand, std::set<std::string>& out_inputs, std::set<const Recipe*>& seen) {
  const Recipe* recipe = operand.recipe.get();
  if (operand.is_known() || recipe == nullptr || !recipe->needs_inputs || !seen.insert(recipe).second) return;
  if (!recipe->input.empty()) out_inputs.insert(recipe->input);
  for (const Operand& other : recipe->operands) collect_inputs(other, out_inputs, seen);
}

/// "layer1/conv1/Conv" of "/layer1/conv1/Conv".
std::string scope_name(const NodeRecord& node) {
  std::string_view name = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
  while (!name.empty() && name.front() == '/') name.remove_prefix(1);
  return std::string(name.empty() ? node.op : name);
}

bool has_subgraph(const NodeRecord& node) {
  return std::ranges::any_of(node.attributes, [](const AttributeRecord& attribute) { return !attribute.graphs.empty(); });
}

bool runs_bodies(const NodeRecord& node) {
  return node.domain.empty() && (node.op == "If" || node.op == "Loop");
}

/// The names that a graph defines.
std::set<std::string_view> names_of(const GraphRecord& graph) {
  std::set<std::string_view> names;
  for (const ValueRecord& input : graph.inputs) names.insert(input.name);
  for (const TensorRecord& record : graph.initializers) names.insert(record.name);
  for (const SparseTensorRecord& record : graph.sparse_initializers) names.insert(record.values.name);
  for (const NodeRecord& node : graph.nodes) names.insert(node.outputs.begin(), node.outputs.end());
  return names;
}

/// Calls f with each name that a node, or a graph in it, reads from outside.
template <class F>
void for_each_read(const NodeRecord& node, const F& f) {
  for (const std::string_view name : node.inputs) {
    if (!name.empty()) f(name);
  }
  for (const AttributeRecord& attribute : node.attributes) {
    for (const GraphRecord& graph : attribute.graphs) {
      for (const NodeRecord& inner : graph.nodes) for_each_read(inner, f);
      for (const ValueRecord& output : graph.outputs) f(output.name);
    }
  }
}

/// The operands of an operator that are weights of a layer, as a set of bits.
unsigned weights_of(const NodeRecord& node) {
  static const std::map<std::string_view, unsigned> operands = {{"BatchNormalization", 0b11110},
                                                                {"Conv", 0b110},
                                                                {"ConvTranspose", 0b110},
                                                                {"Gemm", 0b110},
                                                                {"GroupNormalization", 0b110},
                                                                {"InstanceNormalization", 0b110},
                                                                {"LayerNormalization", 0b110},
                                                                {"MatMul", 0b11},
                                                                {"PRelu", 0b10},
                                                                {"RMSNormalization", 0b10}};
  const auto found = node.domain.empty() ? operands.find(node.op) : operands.end();
  return found == operands.end() ? 0 : found->second;
}

/// Names of operands that are weights whatever their size: those of weights_of, and the bias that is added to a product.
std::set<std::string_view> weight_operands(const GraphRecord& graph) {
  std::set<std::string_view> names, products;
  for (const NodeRecord& node : graph.nodes) {
    if (node.op == "MatMul") products.insert(node.outputs.begin(), node.outputs.end());
    const bool is_bias =
        node.op == "Add" && std::ranges::any_of(node.inputs, [&](std::string_view name) { return products.contains(name); });
    const unsigned weights = is_bias ? 0b11 : weights_of(node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if ((weights >> i & 1) != 0) names.insert(node.inputs[i]);
    }
  }
  return names;
}

}  // namespace

std::set<std::string_view> names_behind(const GraphRecord& graph, std::span<const std::string> values, const InputTypes& given) {
  std::unordered_map<std::string_view, const NodeRecord*> producers;
  for (const NodeRecord& node : graph.nodes) {
    for (const std::string_view name : node.outputs) producers.try_emplace(name, &node);
  }
  std::set<std::string_view> names(values.begin(), values.end());
  std::vector<std::string_view> open(values.begin(), values.end());
  while (!open.empty()) {
    const auto producer = producers.find(open.back());
    const bool is_given = given.contains(std::string(open.back()));
    open.pop_back();
    if (producer == producers.end() || is_given) continue;
    for_each_read(*producer->second, [&](std::string_view name) {
      if (names.insert(name).second) open.push_back(name);
    });
  }
  return names;
}

/// The values of a graph by name.
struct Importer::Scope {
  const Scope* parent = nullptr;
  std::unordered_map<std::string_view, Operand> values = {};

  const Operand* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
      if (const auto found = scope->values.find(name); found != scope->values.end()) return &found->second;
    }
    return nullptr;
  }
};

Evaluate evaluate_on_host(const Context& context, const Device& device) {
  const std::string oracle = exec::oracle_device(context);
  const Device host = oracle.empty() ? device : context.device(oracle);
  return [context, host](const Graph& graph, std::span<const Tensor> inputs) {
    std::vector<Tensor> results = exec::run_immediately(context, host, graph, inputs);
    for (Tensor& result : results) result = result.to_host().contiguous();
    return results;
  };
}

std::int64_t Frame::opset(std::string_view domain) const {
  const auto found = std::ranges::find(opsets, domain, &OpsetRecord::domain);
  return found == opsets.end() ? 0 : found->version;
}

Importer::Importer(const ModelFile& file, Weights& weights, const Evaluate& evaluate, const InputTypes& inputs,
                   const ImportOptions& options, Graph& out_graph)
    : file_(file),
      graph_(options.graph != nullptr ? *options.graph : file.model().graph),
      weights_(weights),
      evaluate_(evaluate),
      input_types_(inputs),
      options_(options) {
  target_.graph = &out_graph;
  auto frame = std::make_shared<Frame>();
  frame->opsets = file.model().opsets;
  frame_ = std::move(frame);
  for (const FunctionRecord& function : file.model().functions) functions_[{function.domain, function.name}] = &function;
}

void Importer::run() {
  Scope scope;
  const Restore current(scope_, &scope);
  std::vector<std::string> names = options_.outputs;
  if (names.empty()) {
    for (const ValueRecord& output : graph_.outputs) names.emplace_back(output.name);
  }
  const auto is_input = [&](const auto& given) {
    return std::ranges::find(graph_.inputs, given.first, &ValueRecord::name) != graph_.inputs.end();
  };
  is_part_ = !options_.outputs.empty() || !std::ranges::all_of(input_types_, is_input);
  if (is_part_) needed_ = names_behind(graph_, names, input_types_);
  if (options_.mode != nullptr) small_weights_ = weight_operands(graph_);
  for (const auto& [name, tensor] : options_.constants) {
    scope.values[name] = Operand(tensor);
    fixed_.insert(name);
  }
  add_initializers(graph_, scope);
  add_inputs();
  import_nodes(graph_.nodes, scope);
  if (options_.output_boundary) {
    for (std::string& name : boundary(scope)) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  }
  std::vector<std::pair<std::string, Value>> outputs;
  for (const std::string& name : names) {
    const Operand* operand = scope.find(name);
    if (operand == nullptr) throw Error(fmt::format("{}: output '{}': no node computes it", file_.name(), name));
    if (operand->kind == Operand::Kind::failed) continue;
    if (operand->kind != Operand::Kind::tensor) {
      problems_.push_back(fmt::format("output '{}' is a sequence or an optional, expected a tensor", name));
      continue;
    }
    outputs.emplace_back(name, value_of(*operand));
  }
  if (!problems_.empty()) {
    const std::size_t others = problems_.size() > 20 ? problems_.size() - 20 : 0;
    if (others > 0) problems_.resize(20);
    throw Error(Status::unsupported,
                fmt::format("{}{}", fmt::join(problems_, "\n"), others > 0 ? fmt::format("\nand {} more", others) : ""));
  }
  for (const auto& [name, value] : outputs) target_.graph->output(name, value);
  for (const auto& [name, next] : next_states_) target_.graph->update(parameters_.at(name), next);
}

void Importer::add_initializers(const GraphRecord& graph, Scope& scope) {
  const auto add = [&](const auto& record, std::string_view name) {
    const Tensor& tensor = weights_.tensor(record);
    weights_.declare(tensor, name, small_weights_.contains(name) ? 1 : 2);
    scope.values[name] = Operand(tensor);
    if (depth_ == 0) fixed_.insert(name);
  };
  for (const TensorRecord& record : graph.initializers) add(record, record.name);
  for (const SparseTensorRecord& record : graph.sparse_initializers) add(record, record.values.name);
}

void Importer::add_inputs() {
  const auto add = [&](const std::string& name, const InputType& type) {
    Operand operand(target_.graph->input(name, type.dtype, type.shape));
    if (type.elements.defined()) {
      operand.known = type.elements.to_host().contiguous();
    } else if (type.shape.count() <= max_specialised_elements) {
      auto recipe = std::make_shared<Recipe>();
      recipe->input = name;
      recipe->needs_inputs = true;
      operand.recipe = std::move(recipe);
    }
    scope_->values[name] = std::move(operand);
  };
  for (const ValueRecord& input : graph_.inputs) {
    if (scope_->values.contains(input.name)) continue;  // an initializer, of which IR version 3 makes an input as well
    const auto given = input_types_.find(std::string(input.name));
    if (given == input_types_.end() && !is_needed(input.name)) continue;
    if (given == input_types_.end()) throw Error(fmt::format("{}: input '{}' is missing", file_.name(), input.name));
    add(given->first, given->second);
  }
  for (const auto& [name, type] : input_types_) {
    if (!scope_->values.contains(name) && is_needed(name)) add(name, type);
  }
}

bool Importer::is_computed(const NodeRecord& node) const {
  return std::ranges::any_of(node.outputs,
                             [&](std::string_view name) { return is_needed(name) && !input_types_.contains(std::string(name)); });
}

std::vector<std::string> Importer::boundary(const Scope& scope) const {
  std::set<std::string_view> read;
  for (const ValueRecord& output : graph_.outputs) read.insert(output.name);
  for (const NodeRecord& node : graph_.nodes) {
    if (!is_computed(node)) for_each_read(node, [&](std::string_view name) { read.insert(name); });
  }
  std::vector<std::string> names;
  for (const NodeRecord& node : graph_.nodes) {
    for (const std::string_view name : node.outputs) {
      const Operand* operand = read.contains(name) ? scope.find(name) : nullptr;
      // What is known, or has a recipe, is as cheap to import again, and stays known.
      const bool is_result = operand != nullptr && operand->kind == Operand::Kind::tensor && !operand->is_known() &&
                             operand->recipe == nullptr && target_.graph->info(operand->value.id()).kind == ValueKind::computed;
      if (is_result) names.emplace_back(name);
    }
  }
  return names;
}

void Importer::need_values(const NodeRecord& node, const std::vector<Operand>& operands, const ElementsUnknown& unknown) const {
  if (runs_bodies(node) && node.op == "Loop") need_bodies(node, unknown.what());
  ValuesNeeded needed{.values = {}, .results = {}, .problem = unknown.what()};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_absent() || operands[i].is_known() || (!unknown.sizes_results && i != unknown.operand)) continue;
    const bool fits =
        operands[i].kind == Operand::Kind::tensor && (unknown.sizes_results || operands[i].shape().count() <= max_specialised_elements);
    if (!fits) throw unknown;
    needed.values.emplace_back(node.inputs[i]);
  }
  if (unknown.sizes_results) {
    for (const std::string_view name : node.outputs) {
      if (!name.empty()) needed.results.emplace_back(name);
    }
  }
  throw needed;
}

void Importer::need_bodies(const NodeRecord& node, const std::string& problem) const {
  ValuesNeeded needed{.values = {}, .results = {}, .problem = problem, .control = &node};
  std::set<std::string_view> seen;
  const auto add = [&](std::string_view name) {
    if (name.empty() || !seen.insert(name).second) return;
    const Operand& operand = *scope_->find(name);
    if (operand.kind != Operand::Kind::tensor) {
      throw Error(Status::unsupported,
                  fmt::format("{}; and the node reads '{}', a sequence or an optional, expected a tensor", problem, name));
    }
    if (operand.is_known() && (fixed_.contains(name) || weights_.name_of(operand.known) != nullptr)) {
      needed.constants[std::string(name)] = operand.known;
    } else {
      needed.values.emplace_back(name);
    }
  };
  for (const std::string_view name : node.inputs) add(name);
  for (const AttributeRecord& attribute : node.attributes) {
    for (const GraphRecord& body : attribute.graphs) {
      const std::set<std::string_view> own = names_of(body);
      const auto add_outer = [&](std::string_view name) {
        if (!own.contains(name) && scope_->find(name) != nullptr) add(name);
      };
      for (const NodeRecord& inner : body.nodes) for_each_read(inner, add_outer);
      for (const ValueRecord& output : body.outputs) add_outer(output.name);
    }
  }
  for (const std::string_view name : node.outputs) {
    if (!name.empty()) needed.results.emplace_back(name);
  }
  throw needed;
}

void Importer::run_bodies(const Node& node, const std::string& problem) const {
  if (is_cut() && control_ != nullptr) throw BodiesNeeded{problem};
  node.unsupported(problem);
}

void Importer::import_nodes(const std::vector<NodeRecord>& nodes, Scope& scope) {
  const bool is_inner = &nodes != &graph_.nodes;
  for (const NodeRecord* node : order_of(nodes)) {
    if (is_inner || is_computed(*node)) import_node(*node, scope);
  }
}

std::vector<const NodeRecord*> Importer::order_of(const std::vector<NodeRecord>& nodes) const {
  std::unordered_map<std::string_view, std::size_t> producers;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const std::string_view output : nodes[n].outputs) {
      if (!output.empty()) producers.try_emplace(output, n);
    }
  }
  // What a node waits for: earlier and later ones alike. Names of other graphs, and of values in a subgraph, have no producer here.
  std::vector<std::size_t> waits(nodes.size());
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  bool sorted = true;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for_each_read(nodes[n], [&](std::string_view name) {
      const auto producer = producers.find(name);
      if (producer == producers.end()) return;
      sorted = sorted && producer->second < n;
      ++waits[n];
      readers[producer->second].push_back(n);
    });
  }
  std::vector<const NodeRecord*> order;
  if (sorted) {
    for (const NodeRecord& node : nodes) order.push_back(&node);
    return order;
  }
  std::vector<std::size_t> ready;
  for (std::size_t n = nodes.size(); n-- > 0;) {
    if (waits[n] == 0) ready.push_back(n);
  }
  while (!ready.empty()) {
    const std::size_t n = ready.back();
    ready.pop_back();
    order.push_back(&nodes[n]);
    for (const std::size_t reader : readers[n]) {
      if (--waits[reader] == 0) ready.push_back(reader);
    }
  }
  if (order.size() < nodes.size()) {
    const auto stuck = static_cast<std::size_t>(std::ranges::find_if(waits, [](std::size_t n) { return n > 0; }) - waits.begin());
    throw Error(fmt::format("{}: node '{}' ({}) reads a value that depends on its own result: expected a graph without cycles",
                            file_.name(), scope_name(nodes[stuck]), nodes[stuck].op));
  }
  return order;
}

void Importer::import_node(const NodeRecord& node, Scope& scope) {
  static const std::uint64_t most = io::limit(io::Limit::onnx_nodes);
  if (++nodes_ > most) io::fail_limit(file_.name(), io::Limit::onnx_nodes, "more");
  std::vector<Operand> operands;
  bool failed = false;
  for (const std::string_view name : node.inputs) {
    const Operand* operand = name.empty() ? nullptr : scope.find(name);
    if (operand == nullptr && !name.empty()) {
      throw Error(fmt::format("{}: node '{}' ({}) reads '{}', which no node computes and is no input", file_.name(), scope_name(node),
                              node.op, name));
    }
    operands.push_back(operand == nullptr ? Operand() : *operand);
    failed = failed || operands.back().kind == Operand::Kind::failed;
  }
  if (!failed) {
    try {
      const std::int64_t opset = std::max<std::int64_t>(frame_->opset(node.domain), 1);
      if (const Rule* rule = find_rule(node.domain, node.op, opset); rule != nullptr) {
        try {
          const Restore control(control_, depth_ > 0 ? control_ : runs_bodies(node) ? &node : nullptr);
          return apply_rule(*rule, node, opset, operands, scope);
        } catch (const ElementsUnknown& unknown) {
          if (!is_cut()) throw;
          if (depth_ == 0) need_values(node, operands, unknown);
          if (control_ != nullptr) throw BodiesNeeded{unknown.what()};
          throw;
        } catch (const BodiesNeeded& needed) {
          if (depth_ > 0) throw;
          need_bodies(node, needed.problem);
        }
      }
      if (const auto function = functions_.find({node.domain, node.op}); function != functions_.end()) {
        return inline_function(*function->second, node, std::move(operands), scope);
      }
      if (!node.domain.empty() && graph::find_vendor_op(node.domain, node.op) != nullptr) {
        return set_results(node, apply_vendor_op(node, operands), scope);
      }
      const char* refusal = refusal_of(node.domain, node.op);
      Node(*this, node, opset, std::move(operands)).unsupported(refusal != nullptr ? refusal : "Tenon has no such operator");
    } catch (const Failed&) {
    } catch (const Error& error) {
      // Errors of ops do not know the node that they belong to.
      std::string text = error.what();
      if (!text.starts_with(file_.name())) text = fmt::format("{}: node '{}' ({}): {}", file_.name(), scope_name(node), node.op, text);
      if (error.status() != Status::unsupported) throw Error(error.status(), text);
      problems_.push_back(std::move(text));
    }
  }
  Operand result;
  result.kind = Operand::Kind::failed;
  set_results(node, std::vector<Operand>(node.outputs.size(), result), scope);
}

void Importer::inline_function(const FunctionRecord& function, const NodeRecord& node, std::vector<Operand> operands, Scope& scope) {
  if (depth_ >= max_depth) {
    throw Error(fmt::format("{}: node '{}' ({}): expected functions and subgraphs at most {} deep, got a deeper one", file_.name(),
                            scope_name(node), node.op, max_depth));
  }
  auto frame = std::make_shared<Frame>();
  frame->opsets = function.opsets.empty() ? frame_->opsets : function.opsets;
  frame->caller = frame_;
  for (const AttributeRecord& attribute : function.attributes_defaults) frame->attributes[attribute.name] = &attribute;
  for (const AttributeRecord& attribute : node.attributes) {
    const AttributeRecord* given = &attribute;
    if (!attribute.reference.empty()) {
      const auto bound = frame_->attributes.find(attribute.reference);
      given = bound == frame_->attributes.end() ? nullptr : bound->second;
    }
    if (given != nullptr) frame->attributes[attribute.name] = given;
  }
  Scope inner;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) inner.values[function.inputs[i]] = i < operands.size() ? operands[i] : Operand();
  std::vector<Operand> results;
  {
    const Restore<std::shared_ptr<const Frame>> new_frame(frame_, std::move(frame));
    const Restore current(scope_, &inner);
    const Restore depth(depth_, depth_ + 1);
    import_nodes(function.nodes, inner);
    for (std::size_t i = 0; i < std::min(function.outputs.size(), node.outputs.size()); ++i) {
      const Operand* result = inner.find(function.outputs[i]);
      if (result == nullptr && !node.outputs[i].empty()) {
        throw Error(fmt::format("{}: function {}.{}: no node computes its output '{}'", file_.name(), function.domain, function.name,
                                function.outputs[i]));
      }
      results.push_back(result == nullptr ? Operand() : *result);
    }
  }
  set_results(node, std::move(results), scope);
}

void Importer::apply_rule(const Rule& rule, const NodeRecord& node, std::int64_t opset, std::vector<Operand> operands, Scope& scope) {
  const bool control = has_subgraph(node);  // each of its nodes is evaluated by itself
  const auto is_weight = [&](const Operand& operand) { return weights_.name_of(operand.known) != nullptr; };
  const bool constant = !control && all_tensors(operands, [&](const Operand& o) { return o.is_known() && !is_weight(o); });
  if (constant && count_elements(operands) <= max_host_elements) {
    std::vector<Operand> results;
    try {
      results = evaluate(rule, node, operands, true);
    } catch (const Error& error) {
      // Where the host lacks an op, the graph may have it; other errors occur there again.
      log::info("{}: node '{}' ({}) is not evaluated on the host: {}", file_.name(), scope_name(node), node.op, error.what());
    }
    if (!results.empty()) {
      const bool literal = node.op == "Constant" && node.domain.empty();
      if (literal && results[0].is_known()) {
        if (depth_ == 0) fixed_.insert(node.outputs[0]);
        weights_.declare(results[0].known, node.outputs[0], small_weights_.contains(node.outputs[0]) ? 1 : 2);
      }
      return set_results(node, std::move(results), scope);
    }
  }
  std::vector<Operand> results;
  {
    Graph& graph = *target_.graph;
    std::string before = graph.scope();
    if (!target_.on_host) graph.set_scope((before.empty() ? "" : before + "/") + scope_name(node));
    struct Leave {
      Graph& graph;
      std::string scope;
      ~Leave() { graph.set_scope(std::move(scope)); }
    } const leave{graph, std::move(before)};
    Node context(*this, node, opset, operands);
    rule.apply(context);
    results = std::move(context.results());
  }
  const bool derivable = !control && all_tensors(operands, [](const Operand& o) { return o.is_known() || o.recipe != nullptr; });
  int depth = 0;
  bool needs_inputs = false;
  for (const Operand& operand : operands) {
    if (operand.is_known() || operand.recipe == nullptr) continue;
    depth = std::max(depth, operand.recipe->depth + 1);
    needs_inputs = needs_inputs || operand.recipe->needs_inputs;
  }
  if (derivable && depth < max_recipe_depth) {
    const auto memo = std::make_shared<std::vector<Tensor>>();
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].kind != Operand::Kind::tensor || results[i].is_known() || results[i].recipe != nullptr) continue;
      auto recipe = std::make_shared<Recipe>();
      recipe->node = &node;
      recipe->rule = &rule;
      recipe->frame = frame_;
      recipe->operands = operands;
      recipe->output = i;
      recipe->needs_inputs = needs_inputs;
      recipe->depth = depth;
      recipe->results = memo;
      results[i].recipe = std::move(recipe);
    }
  }
  set_results(node, std::move(results), scope);
}

std::vector<Operand> Importer::apply_vendor_op(const NodeRecord& node, const std::vector<Operand>& operands) {
  std::vector<Value> inputs;
  for (const Operand& operand : operands) inputs.push_back(operand.is_absent() ? Value() : value_of(operand));
  AttributeValues attributes;
  for (const AttributeRecord& attribute : node.attributes) {
    AttributeValue& value = attributes[std::string(attribute.name)];
    switch (attribute.type) {
      case AttributeRecord::Type::i:
        value = attribute.integer;
        break;
      case AttributeRecord::Type::f:
        value = static_cast<double>(attribute.number);
        break;
      case AttributeRecord::Type::s:
        value = std::string(attribute.text);
        break;
      case AttributeRecord::Type::ints:
        value = attribute.integers;
        break;
      case AttributeRecord::Type::floats:
        value = std::vector<double>(attribute.numbers.begin(), attribute.numbers.end());
        break;
      default:
        Node(*this, node, 1, {})
            .unsupported(fmt::format("attribute '{}': a vendor's op takes numbers, texts and lists of numbers", attribute.name));
    }
  }
  const std::vector<Value> results = ops::call(fmt::format("{}.{}", node.domain, node.op), inputs, attributes);
  return {results.begin(), results.end()};
}

void Importer::set_results(const NodeRecord& node, std::vector<Operand> results, Scope& scope) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (depth_ == 0 && scope.values.contains(node.outputs[i]) && input_types_.contains(std::string(node.outputs[i]))) continue;
    Operand result = i < results.size() ? std::move(results[i]) : Operand();
    if (!scope.values.insert_or_assign(node.outputs[i], std::move(result)).second) {
      throw Error(fmt::format("{}: node '{}' ({}) computes '{}', which has a value already: expected one node for each value", file_.name(),
                              scope_name(node), node.op, node.outputs[i]));
    }
  }
}

std::vector<Operand> Importer::run_graph(const GraphRecord& graph, std::vector<Operand> inputs) {
  if (depth_ >= max_depth)
    throw Error(fmt::format("{}: graph '{}': expected functions and subgraphs at most {} deep, got a deeper one", file_.name(), graph.name,
                            max_depth));
  if (inputs.size() > graph.inputs.size()) {
    throw Error(fmt::format("{}: graph '{}': expected {} inputs, got {}", file_.name(), graph.name, graph.inputs.size(), inputs.size()));
  }
  Scope scope;
  scope.parent = scope_;
  const Restore current(scope_, &scope);
  const Restore depth(depth_, depth_ + 1);
  add_initializers(graph, scope);
  for (std::size_t i = 0; i < inputs.size(); ++i) scope.values[graph.inputs[i].name] = std::move(inputs[i]);
  import_nodes(graph.nodes, scope);
  std::vector<Operand> results;
  for (const ValueRecord& output : graph.outputs) {
    const Operand* result = scope.find(output.name);
    if (result == nullptr)
      throw Error(fmt::format("{}: graph '{}': no node computes its output '{}'", file_.name(), graph.name, output.name));
    if (result->kind == Operand::Kind::failed) throw Failed{};
    results.push_back(*result);
  }
  return results;
}

Value Importer::key() {
  if (!key_.present()) key_ = target_.graph->input(key_input, DType::u64, {2});
  return key_;
}

Value Importer::state(const Operand& weight) {
  const Value before = value_of(weight);
  const std::string& name = *weights_.name_of(weight.known);
  states_.insert(name);
  const auto next = next_states_.find(name);
  return next == next_states_.end() ? before : next->second;
}

void Importer::set_state(const Operand& weight, Value next) {
  next_states_[*weights_.name_of(weight.known)] = next;
}

void Importer::count_iterations(const Node& node, std::int64_t iterations) {
  iterations_ += std::min(iterations, options_.max_unrolled_iterations + 1);
  if (iterations_ > options_.max_unrolled_iterations) {
    node.unsupported(
        fmt::format("expected at most {} iterations of loops in the model, which are unrolled; got more "
                    "(LoadOptions::max_unrolled_iterations)",
                    options_.max_unrolled_iterations));
  }
}

Value Importer::value_of(const Operand& operand) {
  if (operand.value.present() && &operand.value.graph() == target_.graph) return operand.value;
  if (operand.kind == Operand::Kind::failed) throw Failed{};
  if (!operand.is_known()) throw Error(fmt::format("{}: expected a tensor, got a sequence, an optional, or an absent value", file_.name()));
  const Tensor& known = operand.known;
  if (target_.on_host) {
    Value& value = target_.values[{known.address(), known.dtype(), known.shape().str()}];
    if (!value.present()) {
      value = target_.graph->input(fmt::format("operand_{}", target_.inputs.size()), known.dtype(), known.shape());
      target_.inputs.push_back(known);
    }
    return value;
  }
  if (const std::string* name = weights_.name_of(known); name != nullptr) {
    Value& value = parameters_[*name];
    if (!value.present()) value = target_.graph->parameter(*name, known.dtype(), known.shape());
    return value;
  }
  auto& [tensor, value] = constants_[{known.address(), known.dtype(), known.shape().str()}];
  if (!value.present()) {
    tensor = known;
    value = target_.graph->constant(known);
  }
  return value;
}

std::vector<Operand> Importer::evaluate(const Rule& rule, const NodeRecord& node, const std::vector<Operand>& operands, bool limited) {
  Graph graph;
  Target target;
  target.graph = &graph;
  target.on_host = true;
  const Restore<Target> host(target_, std::move(target));
  Node context(*this, node, std::max<std::int64_t>(frame_->opset(node.domain), 1), operands);
  rule.apply(context);
  std::vector<Operand> results = std::move(context.results());
  const std::int64_t most = std::max(max_host_elements, count_elements(operands));
  std::vector<Operand*> computed;
  const auto resolve = [&](auto&& self, std::vector<Operand>& list) -> bool {
    for (Operand& result : list) {
      if (result.kind == Operand::Kind::list && !self(self, result.list)) return false;
      if (!result.value.present() || result.is_known()) continue;
      if (limited && result.shape().count() > most) return false;
      const ValueInfo& info = graph.info(result.value.id());
      if (info.kind == ValueKind::constant) {
        result.known = info.constant;
      } else if (info.kind == ValueKind::input) {
        // Inputs are the operands in the order of target_.inputs; other values lie between them.
        std::size_t position = 0;
        for (ValueId v = 0; v < result.value.id(); ++v) position += graph.info(v).kind == ValueKind::input ? 1U : 0U;
        result.known = target_.inputs.at(position);
      } else {
        graph.output(fmt::format("result_{}", computed.size()), result.value);
        computed.push_back(&result);
      }
    }
    return true;
  };
  if (!resolve(resolve, results)) return {};
  if (!computed.empty()) {
    const std::vector<Tensor> values = evaluate_(graph, target_.inputs);
    for (std::size_t i = 0; i < computed.size(); ++i) computed[i]->known = values[i];
  }
  const auto forget = [&](auto&& self, std::vector<Operand>& list) -> void {
    for (Operand& result : list) {
      self(self, result.list);
      result.value = {};
      result.recipe = {};
    }
  };
  forget(forget, results);
  return results;
}

Tensor Importer::evaluate(const Recipe& recipe) {
  if (recipe.results->empty()) {
    std::vector<Operand> operands = recipe.operands;
    for (Operand& operand : operands) {
      if (operand.kind != Operand::Kind::tensor || operand.is_known()) continue;
      operand = Operand(elements_of(operand, true));
      if (!operand.is_known()) return {};
    }
    const Restore<std::shared_ptr<const Frame>> frame(frame_, recipe.frame);
    for (const Operand& result : evaluate(*recipe.rule, *recipe.node, operands, false)) recipe.results->push_back(result.known);
  }
  return recipe.output < recipe.results->size() ? (*recipe.results)[recipe.output] : Tensor();
}

Tensor Importer::elements_of(const Operand& operand, bool needed) {
  if (operand.kind == Operand::Kind::failed) throw Failed{};
  if (operand.is_known() || operand.recipe == nullptr) return operand.known;
  if (operand.recipe->needs_inputs) {
    if (!needed) return {};
    ElementsNeeded inputs;
    std::set<const Recipe*> seen;
    collect_inputs(operand, inputs.inputs, seen);
    throw inputs;
  }
  return evaluate(*operand.recipe);
}

}  // namespace tenon::onnx
