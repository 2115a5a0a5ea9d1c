// SPDX-License-Identifier: Apache-2.0
#include "config/config_table.h"

#include <fmt/format.h>
#include <tenon/device_name.h>
#include <tenon/error.h>

#include "yaml/suggest.h"

namespace tenon {
namespace {

const std::vector<yaml::Choice<Precision>> precisions = {{"float32", Precision::float32},
                                                         {"tf32", Precision::tf32},
                                                         {"mixed_bfloat16", Precision::mixed_bfloat16},
                                                         {"mixed_float16", Precision::mixed_float16}};
const std::vector<yaml::Choice<Fallback>> fallbacks = {{"error", Fallback::error}, {"warn", Fallback::warn}, {"allow", Fallback::allow}};
const std::vector<yaml::Choice<CheckNumerics>> numeric_checks = {
    {"off", CheckNumerics::off}, {"outputs", CheckNumerics::outputs}, {"all", CheckNumerics::all}};
const std::vector<yaml::Choice<Fusion>> fusions = {{"off", Fusion::off}, {"elementwise", Fusion::elementwise}, {"full", Fusion::full}};
const std::vector<yaml::Choice<Capture>> captures = {{"auto", Capture::automatic}, {"off", Capture::off}};
const std::vector<yaml::Choice<BackendProbe>> probes = {
    {"always", BackendProbe::always}, {"once", BackendProbe::once}, {"never", BackendProbe::never}};
const std::vector<yaml::Choice<LogLevel>> log_levels = {{"off", LogLevel::off},
                                                        {"error", LogLevel::error},
                                                        {"warning", LogLevel::warning},
                                                        {"info", LogLevel::info},
                                                        {"debug", LogLevel::debug}};

}  // namespace

const char* name_of(Precision value) {
  return yaml::word_of(precisions, value);
}
const char* name_of(Fallback value) {
  return yaml::word_of(fallbacks, value);
}
const char* name_of(CheckNumerics value) {
  return yaml::word_of(numeric_checks, value);
}
const char* name_of(Fusion value) {
  return yaml::word_of(fusions, value);
}
const char* name_of(Capture value) {
  return yaml::word_of(captures, value);
}
const char* name_of(BackendProbe value) {
  return yaml::word_of(probes, value);
}
const char* name_of(LogLevel value) {
  return yaml::word_of(log_levels, value);
}

namespace config {
namespace {

// ------------------------------------------------------------------------------------------------------------- values to YAML text

std::string show(bool value) {
  return value ? "true" : "false";
}
std::string show(int value) {
  return std::to_string(value);
}
std::string show(std::int64_t value) {
  return std::to_string(value);
}
std::string show(std::uint64_t value) {
  return std::to_string(value);
}
std::string show(const std::string& value) {
  return yaml_text(value);
}
template <class E>
requires std::is_enum_v<E> std::string show(E value) {
  return name_of(value);
}
std::string show(const PlacementRule& rule) {
  return fmt::format("{{match: {}, device: {}}}", yaml_text(rule.match), yaml_text(rule.device));
}
std::string show(const VirtualDevice& device) {
  return fmt::format("{{of: {}, count: {}, limit_mb: {}}}", yaml_text(device.of), device.count, device.limit_mb);
}
template <class T>
std::string show(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + show(value);
  return "[" + text + "]";
}

// ------------------------------------------------------------------------------------------------------------- YAML to values

bool is_word(const std::string& text, const char* letters) {
  return !text.empty() && text.find_first_not_of(letters) == std::string::npos;
}

void check_backend_name(const Value& value, const std::string& name) {
  const bool good = is_word(name, "abcdefghijklmnopqrstuvwxyz0123456789_") && name[0] >= 'a';
  if (!good) value.fail("'" + name + "' is not a backend name; expected a lower-case letter, then lower-case letters, digits and '_'");
}

std::vector<std::string> backend_names(const Value& value) {
  const std::vector<std::string> names = value.as_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    check_backend_name(value, names[i]);
    for (std::size_t j = 0; j < i; ++j) {
      if (names[i] == names[j]) value.fail("'" + names[i] + "' is given twice");
    }
  }
  return names;
}

std::vector<std::string> paths(const Value& value) {
  if (value.is_scalar()) return {value.as_path()};
  std::vector<std::string> result;
  for (const Value& item : value.items("a list of paths")) result.push_back(item.as_path());
  return result;
}

std::string device_name(const Value& value) {
  const std::string text = value.as_text("a device name");
  try {
    parse_device_name(text);
  } catch (const Error& problem) {
    value.fail(problem.what());
  }
  return text;
}

std::vector<PlacementRule> placement_rules(const Value& value) {
  std::vector<PlacementRule> rules;
  for (const Value& item : value.items("a list of {match, device}")) {
    Section section = item.section();
    PlacementRule rule;
    const Value match = section.require_value("match", "a name with * and ?");
    rule.match = match.as_text();
    if (rule.match.empty()) match.fail("is empty and would match nothing; '*' matches everything");
    rule.device = device_name(section.require_value("device", "a device name"));
    section.finish();
    rules.push_back(rule);
  }
  return rules;
}

std::vector<VirtualDevice> virtual_device_list(const Value& value) {
  std::vector<VirtualDevice> devices;
  for (const Value& item : value.items("a list of {of, count, limit_mb}")) {
    Section section = item.section();
    VirtualDevice device;
    const Value of = section.require_value("of", "a device name");
    device.of = device_name(of);
    if (parse_device_name(device.of).kind == DeviceName::Kind::automatic) of.fail("'auto' does not name one device to divide");
    device.count = section.require<int>("count", "an integer in [1, 64]", {1, 64});
    device.limit_mb = section.get<std::int64_t>("limit_mb", 0, {0});
    section.finish();
    devices.push_back(device);
  }
  return devices;
}

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names = {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) #name,
#include <tenon/ops.def>
#undef TENON_OP
  };
  return names;
}

void set_fallback_op(Config& config, const SubKeys& names, const Value& value) {
  bool known = false;
  for (const std::string& op : op_names()) known = known || op == names[0];
  if (!known) value.fail("there is no op '" + names[0] + "'" + yaml::did_you_mean(names[0], op_names()));
  config.fallback_ops[names[0]] = value.as_choice(fallbacks);
}

void set_option(Config& config, const SubKeys& names, const Value& value) {
  check_backend_name(value, names[0]);
  constexpr const char* letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (!is_word(names[1], letters)) value.fail("'" + names[1] + "' is not an option name; expected letters, digits, '_' and '-'");
  config.backends.options[names[0]][names[1]] = value.as_text("the value of an option");
}

// ------------------------------------------------------------------------------------------------------------- the table

/// Makes the row of one field. `field` returns a reference to it in a Config, const or not; `read` parses its value.
template <class Field, class Read>
Row row(ConfigKey key, Field field, Read read) {
  Row result;
  result.key = key;
  result.set = [field, read](Config& config, const SubKeys&, const Value& value) { field(config) = read(value); };
  result.copy = [field](Config& to, const Config& from, const SubKeys&) { field(to) = field(from); };
  result.show = [field](const Config& config) { return std::vector<std::pair<SubKeys, std::string>>{{SubKeys(), show(field(config))}}; };
  return result;
}

Row fallback_ops_row(ConfigKey key) {
  Row result;
  result.key = key;
  result.depth = 1;
  result.set = set_fallback_op;
  result.copy = [](Config& to, const Config& from, const SubKeys& names) { to.fallback_ops[names[0]] = from.fallback_ops.at(names[0]); };
  result.show = [](const Config& config) {
    std::vector<std::pair<SubKeys, std::string>> values;
    for (const auto& entry : config.fallback_ops) values.emplace_back(SubKeys{entry.first}, show(entry.second));
    return values;
  };
  return result;
}

Row options_row(ConfigKey key) {
  Row result;
  result.key = key;
  result.depth = 2;
  result.set = set_option;
  result.copy = [](Config& to, const Config& from, const SubKeys& names) {
    to.backends.options[names[0]][names[1]] = from.backends.options.at(names[0]).at(names[1]);
  };
  result.show = [](const Config& config) {
    std::vector<std::pair<SubKeys, std::string>> values;
    for (const auto& backend : config.backends.options) {
      for (const auto& option : backend.second) values.emplace_back(SubKeys{backend.first, option.first}, show(option.second));
    }
    return values;
  };
  return result;
}

bool boolean(const Value& value) {
  return value.as_bool();
}
std::uint64_t seed(const Value& value) {
  return value.as_unsigned();
}
int thread_count(const Value& value) {
  return value.as<int>({0, 4096});
}
int spin_limit(const Value& value) {
  return value.as<int>({0, 1000000});
}
std::int64_t megabytes(const Value& value) {
  return value.as_integer({0});
}
std::string optional_path(const Value& value) {
  return value.is_scalar() && value.node().text.empty() ? std::string() : value.as_path();
}
template <const auto& choices>
auto choice(const Value& value) {
  return value.as_choice(choices);
}

#define TENON_FIELD(member)   \
  [](auto& config) -> auto& { \
    return config.member;     \
  }
// clang-format off
std::vector<Row> make_table() {
  return {
      // key, type, default, range, meaning; the field; the reader
      row({"backends.search", "list of paths", "[]", "",
           "folders searched for backend files; ~/ is the home folder, others start from this file's; not in a train.yaml (--trust)"},
          TENON_FIELD(backends.search), paths),
      row({"backends.use", "list of names", "[]", "", "backends in order of preference; empty: every healthy one, by its priority"},
          TENON_FIELD(backends.use), backend_names),
      row({"backends.allow", "list of names", "[]", "", "only these are opened; empty: all"},
          TENON_FIELD(backends.allow), backend_names),
      row({"backends.deny", "list of names", "[]", "", "these are never opened"},
          TENON_FIELD(backends.deny), backend_names),
      row({"backends.probe", "name", "once", "always, once, never",
           "load a backend file in a child process first; once: before its first use, and keep the answer; not in a train.yaml (--trust)"},
          TENON_FIELD(backends.probe), choice<probes>),
      options_row({"backends.options", "map of maps", "{}", "",
                   "backend -> option -> value, as in {openblas: {threads: 2}}; options are the backend's own; not in a train.yaml (--trust)"}),
      row({"device", "device name", "auto", "auto, cpu, gpu, cpu:N, gpu:N, <backend>:N, /device:GPU:N",
           "where models run; auto: the first device in the order of backends.use"},
          TENON_FIELD(device), device_name),
      row({"precision", "name", "float32", "float32, tf32, mixed_bfloat16, mixed_float16",
           "arithmetic of matrix products and convolutions; mixed: 16 bits with f32 weights, sums and losses; f16 uses loss scaling"},
          TENON_FIELD(precision), choice<precisions>),
      row({"fallback", "name", "error", "error, warn, allow", "what to do with an op that the device does not support"},
          TENON_FIELD(fallback), choice<fallbacks>),
      fallback_ops_row({"fallback_ops", "map of names", "{}", "op: error, warn or allow",
                        "fallback of individual ops, as in {Relu: warn}"}),
      row({"soft_placement", "true or false", "false", "", "replace a missing device by the next best one, with a warning"},
          TENON_FIELD(soft_placement), boolean),
      row({"deterministic", "true or false", "false", "", "bit-identical results in every run on one device"},
          TENON_FIELD(deterministic), boolean),
      row({"seed", "integer", "0", ">= 0", "seed of every random sequence: initial weights, dropout masks, shuffling"},
          TENON_FIELD(seed), seed),
      row({"threads", "integer", "0", "0 to 4096", "CPU threads; 0: as many as this process has cores, or fewer if the CPU quota of its cgroup is smaller"},
          TENON_FIELD(threads), thread_count),
      row({"thread_spin_us", "integer", "200", "0 to 1000000 (microseconds)",
           "how long an idle CPU thread spins for its next work before it sleeps; 0: it sleeps at once, which suits shared machines and costs time per op"},
          TENON_FIELD(thread_spin_us), spin_limit),
      row({"logging.level", "name", "warning", "off, error, warning, info, debug", "the lowest severity that is shown"},
          TENON_FIELD(logging.level), choice<log_levels>),
      row({"logging.file", "path", "\"\"", "", "where messages go; empty: standard error"},
          TENON_FIELD(logging.file), optional_path),
      row({"log_device_placement", "true or false", "false", "", "log the available devices and the device and kernel of every op"},
          TENON_FIELD(log_device_placement), boolean),
      row({"sync_debug", "true or false", "false", "",
           "run one node at a time and wait for it, so that an error names its op and node; slow, disables fusion"},
          TENON_FIELD(sync_debug), boolean),
      row({"check_numerics", "name", "off", "off, outputs, all",
           "stop at the first NaN or infinity; outputs: check the results only, all: check after every op"},
          TENON_FIELD(check_numerics), choice<numeric_checks>),
      row({"fusion", "name", "full", "off, elementwise, full", "which ops may be fused"},
          TENON_FIELD(fusion), choice<fusions>),
      row({"capture", "name", "auto", "auto, off",
           "auto: the third run at the same addresses is recorded and later runs replay it as one launch, if the device supports it"},
          TENON_FIELD(capture), choice<captures>),
      row({"memory.limit_mb", "integer", "0", ">= 0 (MiB)", "maximum memory that this process allocates on each device; 0: no limit"},
          TENON_FIELD(memory.limit_mb), megabytes),
      row({"memory.growth", "true or false", "true", "",
           "allocate memory as needed; false: allocate most of memory.limit_mb at the start and leave the rest to memory of plans"},
          TENON_FIELD(memory.growth), boolean),
      row({"memory.pool", "true or false", "true", "", "keep freed memory for reuse"},
          TENON_FIELD(memory.pool), boolean),
      row({"placement", "list of {match, device}", "[]", "",
           "device of ops and layers by name, with wildcards * and ?; the first match wins"},
          TENON_FIELD(placement), placement_rules),
      row({"virtual", "list of {of, count, limit_mb}", "[]", "count 1 to 64, limit_mb >= 0",
           "divide one device into several, each with a memory limit in MiB"},
          TENON_FIELD(virtual_devices), virtual_device_list),
  };
}
// clang-format on
#undef TENON_FIELD

// ------------------------------------------------------------------------------------------------------------- reading

std::string full_path(const Row& row, const SubKeys& names) {
  std::string path = row.key.path;
  for (const std::string& name : names) path += "." + name;
  return path;
}

void set_values(const Row& row, const SubKeys& names, const Value& value, Config& config) {
  if (names.size() < row.depth) {
    for (const auto& entry : value.entries()) {
      SubKeys deeper = names;
      deeper.push_back(entry.first);
      set_values(row, deeper, entry.second, config);
    }
    return;
  }
  Config changed = config;  // also validates a value that a stronger origin overrides
  row.set(changed, names, value);
  const Mark& mark = value.mark();
  Origin& origin = changed.origins[full_path(row, names)];
  const Origin::Kind kind = mark.source ? mark.source->kind : Origin::Kind::yaml;
  if (origin.kind > kind) return;
  origin = {kind, mark.str()};
  config = std::move(changed);
}

}  // namespace

const std::vector<Row>& config_table() {
  static const std::vector<Row> table = make_table();
  return table;
}

void read_config(Section& top, Config& config) {
  for (const Row& row : config_table()) {
    const std::vector<std::string> words = yaml::split_path(row.key.path);
    top.attempt([&] {
      std::optional<Section> section = top;
      for (std::size_t i = 0; section && i + 1 < words.size(); ++i) section = section->child(words[i]);
      const std::optional<Value> value = section ? section->find(words.back()) : std::nullopt;
      if (value) set_values(row, {}, *value, config);
    });
  }
}

void check_config(const Config& config) {
  if (!config.memory.growth && config.memory.limit_mb == 0) {
    throw Error(config.origin_of("memory.growth") +
                ": key 'memory.growth': false allocates memory.limit_mb at the start, but memory.limit_mb is not set; set it, or leave "
                "memory.growth true");
  }
  if (!config.memory.growth && !config.memory.pool) {
    throw Error(config.origin_of("memory.pool") +
                ": key 'memory.pool': false returns each freed block to the device, but memory.growth: false (" +
                config.origin_of("memory.growth") + ") keeps all memory from the start; leave one of them true");
  }
}

std::string yaml_text(const std::string& text) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-";
  const bool starts_well = !text.empty() && text[0] != '-' && text[0] != ':';
  const bool is_null = text == "null" || text == "Null" || text == "NULL";
  if (starts_well && !is_null && text.back() != ':' && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      quoted += std::string("\\") + c;
    else if (byte < ' ' || byte == 0x7f)
      quoted += fmt::format("\\x{:02x}", byte);
    else
      quoted += c;
  }
  return quoted + "\"";
}

}  // namespace config
}  // namespace tenon
