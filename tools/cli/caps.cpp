// SPDX-License-Identifier: Apache-2.0
// tenon caps: lists the op versions, dtypes and features that each backend declares. The README's support table is its Markdown output.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include <tenon/dtype.h>
#include <tenon/error.h>
#include <tenon/graph.h>

#include "cli/backend_report.h"
#include "cli/common.h"
#include "cli/standard_streams.h"
#include "cli/verbs.h"
#include "core/table.h"
#include "exec/loading.h"
#include "loader/vendor_ops.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string format, backend;
};

struct Feature {
  std::uint32_t bit;
  const char* word;
  const char* letter;
  const char* meaning;
};
constexpr Feature features[] = {{TENON_FEATURE_STRIDED, "strided", "s", "accepts any strides without a copy"},
                                {TENON_FEATURE_IN_PLACE, "in_place", "i", "may overwrite its first input"},
                                {TENON_FEATURE_CAPTURE_SAFE, "capture_safe", "c", "may be captured and replayed"},
                                {TENON_FEATURE_EPILOGUE, "epilogue", "e", "fuses the following bias and activation"}};

/// What a backend declares about one op version.
struct Capability {
  std::vector<std::string> dtypes;
  std::uint32_t features = 0;
  std::string switched_off;  ///< why it is disabled; empty if it is enabled
};

/// An op version: of ops of vendors, whose ids are those of one backend, TENON_OP_VENDOR stands for the id.
struct Row {
  tenon_op op = TENON_OP_NONE;
  std::string name;  ///< "Softmax-13", "com.example.SoftClip-1"
  std::uint32_t version = 0;
  bool operator<(const Row& other) const { return std::tie(op, version, name) < std::tie(other.op, other.version, other.name); }
};

struct Column {
  std::string name, version;
  std::map<Row, Capability> capabilities;
  std::vector<std::pair<std::string, std::uint64_t>> routines;  ///< BLAS routines and their dtypes
};

Row row_of(const tenon_backend_info& info, tenon_op op, std::uint32_t version) {
  if (op >= TENON_OP_VENDOR) return {TENON_OP_VENDOR, loader::vendor_op_name(info, op, version), version};
  return {op, fmt::format("{}-{}", op_name(op), version), version};
}

std::vector<std::string> dtype_names(std::uint64_t set) {
  std::vector<std::string> names;
  for (tenon_dtype t = TENON_DTYPE_F16; t <= TENON_DTYPE_BOOL; ++t) {
    if (set & TENON_DTYPE_BIT(t)) names.emplace_back(name_of(static_cast<DType>(t)));
  }
  return names;
}

Column column_of(const loader::Backend& backend) {
  Column column;
  const tenon_backend_info& info = backend.info();
  column.name = backend.name();
  column.version = info.version != nullptr ? info.version : "";
  for (std::uint32_t i = 0; i < info.capability_count; ++i) {
    const auto& declared = *reinterpret_cast<const tenon_capability*>(reinterpret_cast<const char*>(info.capabilities) +
                                                                      std::size_t{i} * info.capability_stride);
    Capability& capability = column.capabilities[row_of(info, declared.op, declared.version)];
    capability.dtypes = dtype_names(declared.dtypes);
    capability.features = declared.features;
    if (const auto* off = backend.find_switched_off(declared.op, declared.version)) capability.switched_off = off->reason;
  }
  for (const tenon_vendor_op& op : loader::vendor_ops_of(info)) column.capabilities.try_emplace(row_of(info, op.id, op.version));
  if (const tenon_blas_table* blas = backend.table().blas; blas != nullptr) {
#define TENON_BLAS(id, routine, level, signature, dtypes) \
  if (blas->routine != nullptr) column.routines.emplace_back(#routine, blas->routine##_dtypes);
#include <tenon/blas.def>
#undef TENON_BLAS
  }
  return column;
}

std::string cell_of(const Column& column, const Row& row) {
  const auto found = column.capabilities.find(row);
  if (found == column.capabilities.end()) return "-";
  if (!found->second.switched_off.empty()) return "off";
  std::string letters;
  for (const Feature& feature : features) {
    if (found->second.features & feature.bit) letters += feature.letter;
  }
  if (found->second.dtypes.empty()) return "yes";  // a vendor's op without a line among the capabilities
  return fmt::format("{}{}", fmt::join(found->second.dtypes, " "), letters.empty() ? "" : " (" + letters + ")");
}

/// A table with ops as rows and backends as columns.
Table matrix(const std::vector<Column>& columns) {
  std::map<Row, bool> rows;
  std::vector<std::string> header{"op"};
  for (const Column& column : columns) {
    header.push_back(column.name);
    for (const auto& entry : column.capabilities) rows[entry.first] = true;
  }
  Table table(std::move(header));
  for (const auto& row : rows) {
    std::vector<std::string> cells{row.first.name};
    for (const Column& column : columns) cells.push_back(cell_of(column, row.first));
    table.add(std::move(cells));
  }
  return table;
}

std::string legend() {
  std::string text;
  for (const Feature& feature : features) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", feature.letter, feature.meaning);
  return text + "\n";
}

std::string as_text(const std::vector<Column>& columns) {
  std::string text = matrix(columns).str() + "\n" + legend();
  for (const Column& column : columns) {
    std::map<std::string, std::string> routines;  // by their dtypes
    for (const auto& [routine, dtypes] : column.routines) routines[fmt::format("{}", fmt::join(dtype_names(dtypes), " "))] += " " + routine;
    for (const auto& [dtypes, names] : routines) text += fmt::format("\n{}: BLAS of {}:{}\n", column.name, dtypes, names);
    for (const auto& [row, capability] : column.capabilities) {
      if (!capability.switched_off.empty()) text += fmt::format("\n{}: {}\n", column.name, capability.switched_off);
    }
  }
  return text;
}

std::string as_json(const std::vector<Column>& columns) {
  nlohmann::ordered_json backends = nlohmann::ordered_json::array();
  for (const Column& column : columns) {
    nlohmann::ordered_json capabilities = nlohmann::ordered_json::array();
    for (const auto& [row, capability] : column.capabilities) {
      std::vector<std::string> words;
      for (const Feature& feature : features) {
        if (capability.features & feature.bit) words.emplace_back(feature.word);
      }
      capabilities.push_back({{"op", row.name.substr(0, row.name.rfind('-'))},
                              {"id", row.op},
                              {"version", row.version},
                              {"dtypes", capability.dtypes},
                              {"features", words},
                              {"switched_off", capability.switched_off}});
    }
    nlohmann::ordered_json routines = nlohmann::ordered_json::array();
    for (const auto& [routine, dtypes] : column.routines) routines.push_back({{"routine", routine}, {"dtypes", dtype_names(dtypes)}});
    backends.push_back({{"name", column.name}, {"version", column.version}, {"capabilities", capabilities}, {"blas", routines}});
  }
  return dump({{"backends", backends}});
}

void run_caps(const Arguments& arguments) {
  const Config config = arguments.common.resolve();
  const LoadedBackends loaded = load_backends(config, exec::loader_options(config, {}, arguments.common.plugins));
  exec::check_requests(config, loaded.result);
  exec::log_loading(loaded.result);
  std::vector<Column> columns;
  std::string names;
  for (const auto& backend : loaded.result.backends) {
    names += (names.empty() ? "" : ", ") + backend->name();
    if (arguments.backend.empty() || arguments.backend == backend->name()) columns.push_back(column_of(*backend));
  }
  if (columns.empty()) {
    const std::string what = arguments.backend.empty() ? "no backend could be loaded" : "backend '" + arguments.backend + "' not found";
    throw Error(Status::device_not_found,
                fmt::format("{}; loaded: {}; run `tenon doctor` for the reason", what, names.empty() ? "none" : names));
  }
  if (arguments.format == "json") {
    print(as_json(columns));
  } else {
    print(arguments.format == "markdown" ? matrix(columns).markdown() + "\n" + legend() : as_text(columns));
  }
}

}  // namespace

void add_caps_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("caps", "list the ops, versions, dtypes and features of each backend");
  arguments->common.add_to(*command);
  add_format(*command, arguments->format, {"text", "json", "markdown"});
  command->add_option("--backend", arguments->backend, "list only this backend")->type_name("NAME");
  command->callback([arguments] { run_caps(*arguments); });
}

}  // namespace tenon::cli
