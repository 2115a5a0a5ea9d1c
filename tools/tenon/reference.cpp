// tenon reference: the pages about ops and BLAS routines, from the lists and from what the runtime and the conformance kit say about each.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/blas.h>
#include <tenon/dtype.h>
#include <tenon/error.h>
#include <tenon/functions.h>

#include "conformance/blas.h"
#include "conformance/case.h"
#include "graph/op.h"
#include "tenon/reference.h"
#include "tenon/verbs.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;
namespace kit = conformance;

constexpr const char* written_by = "<!-- Written by `tenon reference --out plugins`; a test holds it to that. -->\n\n";

[[noreturn]] void missing(const std::string& what, const std::string& of, const std::string& where) {
  throw Error(Status::internal, fmt::format("reference: {} has no {}: write it in {}", of, what, where));
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw Error(fmt::format("reference: wanted {} for what it says, and it cannot be read", file.string()));
  return text.str();
}

/// Plain text where Markdown would see a mark.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '<' || c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string joined(const std::vector<std::string>& words, const char* between = ", ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// ---------------------------------------------------------------- ops

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// Whose operator it is. Gradients, steps and random ops are never ONNX's; neither are a few that it does not have, or has otherwise.
bool is_onnx(const std::string& name) {
  static const std::set<std::string_view> own{"Rsqrt",      "Expm1",  "Log2",    "Log1p",         "Silu",
                                              "ScatterAdd", "Im2Col", "Dropout", "BatchNormTrain"};
  return !ends_with(name, "Grad") && !ends_with(name, "Step") && name.rfind("Random", 0) != 0 && own.count(name) == 0;
}

/// An op, its rule and its case.
struct Page {
  const kit::OpLine* line;
  const kit::OpCase* op_case;
  std::string schema, attributes;
};

std::string dtype_names(std::uint64_t set) {
  std::vector<std::string> names;
  for (tenon_dtype t = TENON_DTYPE_F16; t < TENON_DTYPE_COUNT; ++t) {
    if (set & TENON_DTYPE_BIT(t)) names.emplace_back(name_of(static_cast<DType>(t)));
  }
  return joined(names);
}

/// A link to an op's section.
std::string link_to(std::string name) {
  std::string anchor = name;
  for (char& c : anchor) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fmt::format("[{}](#{})", name, anchor);
}

/// "x, w": operands by their numbers; those of a repeated group have its name.
std::string operands_at(const std::string& schema, const std::vector<std::size_t>& at) {
  std::vector<std::string> names, chosen;
  for (std::string word : words_of(schema.substr(0, schema.find("->")))) {
    word.erase(std::remove_if(word.begin(), word.end(), [](char c) { return c == '(' || c == ')' || c == '*'; }), word.end());
    names.push_back("`" + word.substr(0, word.find(':')) + "`");
  }
  for (const std::size_t i : at) {
    const std::string& name = i < names.size() ? names[i] : names.back();
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) chosen.push_back(name);
  }
  return joined(chosen);
}

/// The attributes that the op's line names, with what the header says; all of the struct's where the line has other words for them.
std::string attributes_text(const Page& page, const std::map<std::string, AttributeStruct>& structs) {
  if (page.attributes == "none") return "- **Attributes**: none\n";
  const auto found = structs.find(page.attributes);
  if (found == structs.end()) missing("struct tenon_attributes_" + page.attributes, page.line->name, "plugins/abi/tenon/backend.h");
  const std::size_t list = page.schema.find(';');
  const std::vector<std::string> words = list == std::string::npos ? std::vector<std::string>() : words_of(page.schema.substr(list + 1));
  const auto is_word = [&](const std::string& name) { return std::find(words.begin(), words.end(), name) != words.end(); };
  const bool by_name = std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::any_of(found->second.fields.begin(), found->second.fields.end(), [&](const auto& field) { return field.name == word; });
  });
  std::string text = fmt::format("- **Attributes**, `tenon_attributes_{}`\n", page.attributes);
  for (const AttributeField& field : found->second.fields) {
    if (by_name && !is_word(field.name) && !(field.name.rfind("has_", 0) == 0 && is_word(field.name.substr(4)))) continue;
    text += fmt::format("  - `{} {}`{}{}\n", field.type, field.name, field.comment.empty() ? "" : ": ", escaped(field.comment));
  }
  if (!found->second.comment.empty()) text += fmt::format("  - {}\n", escaped(found->second.comment));
  return text;
}

std::string shapes_of(const kit::Variant& variant) {
  std::vector<std::string> shapes;
  for (const kit::OperandSpec& operand : variant.inputs) shapes.push_back(operand.present ? kit::str(operand.shape) : "-");
  return joined(shapes, " ");
}

/// The first instance of the case that has elements and is no scalar, for figures.
const kit::Variant& example_of(const kit::OpCase& op_case) {
  for (const kit::Variant& variant : op_case.variants) {
    const bool good = std::all_of(variant.inputs.begin(), variant.inputs.end(), [](const kit::OperandSpec& operand) {
      return !operand.present || std::all_of(operand.shape.begin(), operand.shape.end(), [](std::int64_t size) { return size > 0; });
    });
    if (good && !variant.inputs.empty() && variant.inputs[0].shape.size() > 1) return variant;
  }
  return op_case.variants.front();
}

std::string tolerance_text(const Page& page) {
  const kit::OpCase& op_case = *page.op_case;
  if (op_case.bound.why == nullptr)
    missing("reason for its bound", page.line->stem, fmt::format("tests/conformance/ops/{}.cpp", page.line->room));
  std::string text = fmt::format("- **Tolerance**: {}", escaped(op_case.bound.why));
  const kit::Variant& example = example_of(op_case);
  std::vector<std::string> figures;
  for (const tenon_dtype t : {TENON_DTYPE_F64, TENON_DTYPE_F32, TENON_DTYPE_F16}) {
    const std::vector<tenon_dtype> dtypes = kit::dtypes_of(op_case);
    if (std::find(dtypes.begin(), dtypes.end(), t) == dtypes.end()) continue;
    const kit::Bound bound = op_case.bound(example, t);
    if (bound.relative == 0 && bound.absolute == 0) continue;
    std::vector<std::string> parts;
    if (bound.relative != 0) parts.push_back(fmt::format("{:.2g} \\|wanted\\|", bound.relative));
    if (bound.absolute != 0) parts.push_back(fmt::format("{:.2g}", bound.absolute));
    figures.push_back(fmt::format("{} {}", name_of(static_cast<DType>(t)), joined(parts, " + ")));
  }
  if (!figures.empty()) {
    text += fmt::format(" For operands {}{}{}: {}.", shapes_of(example), example.label.empty() ? "" : " with ", escaped(example.label),
                        joined(figures, "; "));
  }
  return text + "\n";
}

Attributes attributes_of(tenon_op op, const kit::AttributeBytes& bytes) {
  switch (op) {
#define TENON_OP(id, name, version, stem, room, type_operand, dtypes, attributes, schema) \
  case id:                                                                                \
    return Attributes::of(bytes.as<tenon_attributes_##attributes>());
#include <tenon/ops.def>
#undef TENON_OP
    default:
      return {};
  }
}

/// The ops that the gradient of an example is made of.
std::vector<std::string> ops_of_gradient(const Page& page) {
  const kit::Variant& example = example_of(*page.op_case);
  const std::vector<tenon_dtype> dtypes = kit::dtypes_of(*page.op_case);
  const bool is_float = std::find(dtypes.begin(), dtypes.end(), TENON_DTYPE_F64) != dtypes.end();
  const tenon_dtype dtype = is_float ? tenon_dtype{TENON_DTYPE_F64} : dtypes.front();
  Graph graph;
  std::vector<Value> operands, floats;
  for (const kit::OperandSpec& spec : example.inputs) {
    const auto type = static_cast<DType>(kit::resolved(spec.dtype, dtype));
    operands.push_back(spec.present ? graph.input(fmt::format("x{}", operands.size()), type, Shape(std::span(spec.shape))) : Value());
    if (spec.present && (type == DType::f64 || type == DType::f32)) floats.push_back(operands.back());
  }
  NodeOptions options{"judged", Shape(std::span(example.outputs.at(0).shape))};
  if (page.line->op == TENON_OP_Split) {
    const auto axis = static_cast<std::size_t>(example.attributes.as<tenon_attributes_axis>().axis);
    for (const kit::ResultSpec& result : example.outputs) options.sizes.push_back(result.shape[axis]);
  }
  const Value y = graph.apply(page.line->op, operands, attributes_of(page.line->op, example.attributes), options)[0];
  std::vector<std::string> names;
  if (y.dtype() != DType::f64 && y.dtype() != DType::f32) return names;
  gradients(ops::reduce_sum(ops::mul(y, graph.input("dy", y.dtype(), y.shape()))), floats);
  for (const NodeInfo& node : graph.nodes()) {
    const std::string name = op_name(node.op);
    if (node.name.rfind("gradient/judged/", 0) == 0 && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string gradient_text(const Page& page, const std::map<tenon_op, std::string>& gradient_of) {
  const graph::OpRules& rules = graph::rules_of(page.line->op);
  std::string text = "- **Gradient**: ";
  const auto forward = gradient_of.find(page.line->op);
  if (rules.gradient == nullptr) {
    text += forward != gradient_of.end() ? fmt::format("this is that of {}", forward->second) : "none flows through";
  } else {
    std::vector<std::string> names;
    for (const std::string& op : ops_of_gradient(page)) names.push_back(link_to(op));
    text += names.empty() ? "made of no op: what arrives is passed on, or nothing is" : "by " + joined(names);
  }
  if (!page.op_case->gradient.empty())
    text += fmt::format("; finite differences in f64 judge that of {}", operands_at(page.schema, page.op_case->gradient));
  return text + "\n";
}

std::string judged_text(const kit::OpCase& op_case) {
  constexpr std::size_t most = 5;
  std::vector<std::string> shapes;
  for (const kit::Variant& variant : op_case.variants) {
    std::string text = shapes_of(variant);
    if (text.empty()) text = "results " + kit::str(variant.outputs[0].shape);
    if (shapes.size() < most && std::find(shapes.begin(), shapes.end(), text) == shapes.end()) shapes.push_back(text);
  }
  return fmt::format("- **Shapes judged**, among others: {}\n", joined(shapes, "; "));
}

std::string op_section(const Page& page, const std::map<std::string, AttributeStruct>& structs,
                       const std::map<tenon_op, std::string>& gradient_of) {
  const kit::OpLine& line = *page.line;
  const std::string doc = graph::rules_of(line.op).doc;
  if (doc.empty()) missing("formula", line.name, fmt::format("runtime/ops/{}.cpp", line.room));
  std::string text =
      fmt::format("### {}\n\n`TENON_OP_{}` = {}, version {}, {}; stem `{}`, room `{}`\n\n", line.name, line.name, line.op, line.version,
                  is_onnx(line.name) ? fmt::format("ONNX of opset {}", line.version) : "domain tenon", line.stem, line.room);
  text += escaped(doc) + "\n\n";
  const std::size_t end = std::min(page.schema.find(';'), page.schema.size());
  text += fmt::format("- **Operands**: `{}`, T of {}\n", page.schema.substr(0, end), dtype_names(line.dtypes));
  text += attributes_text(page, structs);
  text += tolerance_text(page);
  text += gradient_text(page, gradient_of);
  text += judged_text(*page.op_case);
  return text + "\n";
}

constexpr const char* ops_head = R"(# The ops

What every op of `tenon/ops.def` computes, on which dtypes, and how exact an answer has to be. `tenon conformance` judges by these bounds.

Operands stand as in the list: `x:T` has the dtype T; `S` is T, but f32 beside f16 and bf16; `?` may be absent; `(...)*` is repeated as a group;
`->` comes before the results. The dtypes given for T are those which a complete backend serves. f16 and bf16 are storage: arithmetic on them is
f32's, rounded once at the end. A bound is an absolute error, or a part of the wanted number's magnitude, or the sum of both; "epsilon" is the
distance from 1 to the next number of the dtype. `plugins/abi/README.md` is the contract, `tenon/backend.h` has the structs.

)";

std::string ops_page(const fs::path& include) {
  const std::map<std::string, AttributeStruct> structs = attribute_structs(text_of(include / "backend.h"));
  static const std::vector<kit::OpCase> cases = kit::all_op_cases();
  std::map<tenon_op, const kit::OpCase*> case_of;
  std::map<tenon_op, std::string> gradient_of;
  for (const kit::OpCase& op_case : cases) case_of[op_case.op] = &op_case;
  for (const kit::OpCase& op_case : cases) {
    for (const tenon_op op : op_case.gradient_ops) {
      const kit::OpLine& line = kit::line_of(op_case.op);
      if (!ends_with(line.name, "Grad")) gradient_of.emplace(op, link_to(line.name));
    }
  }
  static const std::map<tenon_op, std::string> attributes{
#define TENON_OP(id, op, version, stem, room, type_operand, dtypes, attributes, schema) {id, #attributes},
#include <tenon/ops.def>
#undef TENON_OP
  };

  std::string text = written_by + std::string(ops_head);
  text +=
      "## Front-end names and wire ops\n\nThe functions of `tenon/functions.h`, namespace `tenon::ops`, and what they put on the wire. "
      "Those that are no op\n";
  text += "themselves list what an example of them is made of.\n\n| function | ops |\n|---|---|\n";
  for (const std::string& function : front_end_functions(text_of(include / "functions.h"))) {
    const auto line = std::find_if(kit::op_lines().begin(), kit::op_lines().end(), [&](const auto& l) { return l.stem == function; });
    const std::vector<std::string> ops = line != kit::op_lines().end() ? std::vector<std::string>{line->name} : ops_made_by(function);
    std::vector<std::string> links;
    for (const std::string& op : ops) links.push_back(link_to(op));
    text += fmt::format("| `{}` | {} |\n", function, joined(links));
  }

  text += "\n";
  std::string room;
  for (const kit::OpLine& line : kit::op_lines()) {
    if (case_of.count(line.op) == 0) missing("case", line.stem, fmt::format("tests/conformance/ops/{}.cpp", line.room));
    if (room != line.room) text += fmt::format("## Room {}\n\n", room = line.room);
    text += op_section({&line, case_of[line.op], graph::schema_of(line.op), attributes.at(line.op)}, structs, gradient_of);
  }
  while (ends_with(text, "\n\n")) text.pop_back();
  return text;
}

// ---------------------------------------------------------------- BLAS

constexpr const char* blas_head = R"(# The BLAS routines

What every routine of `tenon/blas.def` computes, and how exact a result has to be. `tenon conformance --profile blas` judges by these bounds,
against dense algebra in extended precision.

Names are those of the reference BLAS without the type letter; s, d, c and z are f32, f64, c64 and c128. In formulas op(A) is A, its transpose,
its conjugate or both, as `trans` says; x' is the transpose of x, or what has become of it. Arguments stand in the order of the reference's
Fortran interface, in the words that error messages use; the slots of `tenon_blas_table` have them in the types of `tenon/backend.h`, a layout
before them where there are matrices. What a slot owes beyond the formula (sizes of 0, beta = 0, NaN, unreferenced triangles) is in
`plugins/abi/README.md`.
)";

std::string blas_page() {
  std::map<std::string, std::string> why_of;  // by signature
  for (const auto& [name, signature] : kit::blas::all_signatures()) {
    if (signature.why == nullptr) missing("reason for its bound", name, fmt::format("tests/conformance/blas/{}.cpp", name));
    why_of[name] = signature.why;
  }
  struct Entry {
    blas::Routine routine;
    int level;
    const char *signature, *dtypes;
  };
  static constexpr Entry entries[] = {
#define TENON_BLAS(id, routine, level, signature, dtypes) {blas::Routine::routine, level, #signature, #dtypes},
#include <tenon/blas.def>
#undef TENON_BLAS
  };
  std::string text = written_by + std::string(blas_head);
  for (int level = 1; level <= 3; ++level) {
    text += fmt::format("\n## Level {}\n\n| routine | | formula | arguments |\n|---|---|---|---|\n", level);
    for (const Entry& entry : entries) {
      if (entry.level != level) continue;
      const std::string name = blas::name_of(entry.routine), formula = blas::formula_of(entry.routine);
      if (formula.empty()) missing("formula", name, "runtime/blas/routine.cpp");
      text += fmt::format("| `{}` | {} | {} | `{}` |\n", name, entry.dtypes, escaped(formula), blas::arguments_of(entry.routine));
    }
  }
  text += "\n## How exact\n\n";
  std::vector<std::string> reasons;
  for (const Entry& entry : entries) {
    const std::string& why = why_of.at(entry.signature);
    if (std::find(reasons.begin(), reasons.end(), why) == reasons.end()) reasons.push_back(why);
  }
  for (const std::string& why : reasons) {
    std::vector<std::string> names;
    for (const Entry& entry : entries) {
      if (why_of.at(entry.signature) == why) names.push_back(fmt::format("`{}`", blas::name_of(entry.routine)));
    }
    text += fmt::format("- {}: {}\n", joined(names), escaped(why));
  }
  return text;
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw Error(fmt::format("reference: {} cannot be written", file.string()));
  fmt::print("{}\n", file.string());
}

}  // namespace

void add_reference_verb(CLI::App& app) {
  auto out = std::make_shared<fs::path>(".");
  CLI::App* command = app.add_subcommand("reference", "write the reference pages of ops and BLAS routines, ops.md and blas.md");
  command->add_option("--out", *out, "folder for them")->type_name("DIR")->check(CLI::ExistingDirectory)->capture_default_str();
  command->callback([out] {
    const std::string ops = ops_page(installation_prefix() / "include" / "tenon"), blas = blas_page();
    write(*out / "ops.md", ops);
    write(*out / "blas.md", blas);
  });
}

}  // namespace tenon::cli
