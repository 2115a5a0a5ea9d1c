// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include <doctest/doctest.h>
#include <tenon/config.h>

#include "platform/system.h"
#include "rooted.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

namespace {

Environment environment(std::map<std::string, std::string> values) {
  return [values](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

std::string config_error(const std::string& text) {
  return message_of([&] { config_from_text(text, "tenon.yaml", "/etc/tenon"); });
}

const char* const every_key = R"(backends:
  search: [~/lib, rel/dir, /abs]
  use: [cuda, openblas]
  allow: [cuda, openblas, reference]
  deny: sycl
  options: {openblas: {threads: 2, library: /x/libopenblas.so}, cuda: {kernels: tuned}}
  probe: always
device: /device:GPU:0
precision: mixed_bfloat16
fallback: warn
fallback_ops: {Relu: allow, Gemm: error}
soft_placement: true
deterministic: yes
seed: 18446744073709551615
threads: 2
logging: {level: debug, file: run.log}
log_device_placement: true
check_numerics: outputs
fusion: off
capture: off
memory: {limit_mb: 64, growth: false, pool: false}
placement:
  - {match: "embed*", device: cpu}
  - {match: head, device: "cuda:1"}
virtual:
  - {of: reference:0, count: 2}
  - {of: gpu:0, count: 2, limit_mb: 1024}
)";

}  // namespace

TEST_CASE("config: every key reaches its field") {
  const Config config = config_from_text(every_key, "tenon.yaml", "/etc/tenon");
  CHECK(config.backends.search ==
        std::vector<std::string>{rooted(platform::home_folder() + "/lib"), rooted("/etc/tenon/rel/dir"), rooted("/abs")});
  CHECK(config.backends.use == std::vector<std::string>{"cuda", "openblas"});
  CHECK(config.backends.allow == std::vector<std::string>{"cuda", "openblas", "reference"});
  CHECK(config.backends.deny == std::vector<std::string>{"sycl"});
  CHECK(config.backends.probe == BackendProbe::always);
  CHECK(config.backends.options.at("openblas").at("threads") == "2");
  CHECK(config.backends.options.at("openblas").at("library") == "/x/libopenblas.so");
  CHECK(config.backends.options.at("cuda").at("kernels") == "tuned");
  CHECK(config.device == "/device:GPU:0");
  CHECK(config.precision == Precision::mixed_bfloat16);
  CHECK(config.fallback == Fallback::warn);
  CHECK(config.fallback_for("Relu") == Fallback::allow);
  CHECK(config.fallback_for("Gemm") == Fallback::error);
  CHECK(config.fallback_for("Add") == Fallback::warn);
  CHECK(config.soft_placement);
  CHECK(config.deterministic);
  CHECK(config.seed == UINT64_MAX);
  CHECK(config.threads == 2);
  CHECK(config.logging.level == LogLevel::debug);
  CHECK(config.logging.file == rooted("/etc/tenon/run.log"));
  CHECK(config.log_device_placement);
  CHECK(config.check_numerics == CheckNumerics::outputs);
  CHECK(config.fusion == Fusion::off);
  CHECK(config.capture == Capture::off);
  CHECK(config.memory.limit_mb == 64);
  CHECK_FALSE(config.memory.growth);
  CHECK_FALSE(config.memory.pool);
  REQUIRE(config.placement.size() == 2);
  CHECK(config.placement[0] == PlacementRule{"embed*", "cpu"});
  CHECK(config.placement[1] == PlacementRule{"head", "cuda:1"});
  REQUIRE(config.virtual_devices.size() == 2);
  CHECK(config.virtual_devices[0] == VirtualDevice{"reference:0", 2, 0});
  CHECK(config.virtual_devices[1] == VirtualDevice{"gpu:0", 2, 1024});
  CHECK(config.origin_of("device") == "tenon.yaml:8:9");
  CHECK(config.origin_of("backends.options.openblas.threads") == "tenon.yaml:6:33");
}

TEST_CASE("config: a YAML round trip preserves it") {
  for (const char* text :
       {every_key, "device: auto\n", "placement: [{match: \"*\\\"\\\\x\", device: cpu}]\nlogging: {file: \"/a b/c: d\"}\n",
        "backends: {options: {x: {a: null_, b: \"null\", c: \"\", d: \"- x\", e: \"a#b # c\"}}}\n"}) {
    const Config config = config_from_text(text);
    const std::string written = to_yaml(config, false);
    CAPTURE(written);
    CHECK(to_yaml(config_from_text(written), false) == written);
    CHECK(to_yaml(config_from_text(to_yaml(config)), false) == written);
  }
}

TEST_CASE("config: canonical YAML states the origin of each value") {
  Config config = config_from_text("backends:\n  options: {openblas: {threads: 2}}\nseed: 3\n", "tenon.yaml");
  apply_override(config, "device", "cpu:0", {Origin::Kind::command_line, "--device cpu:0"});
  const std::string text = to_yaml(config);
  CAPTURE(text);
  CHECK(text.rfind("backends:\n"
                   "  search: []                             # default\n"
                   "  use: []                                # default\n"
                   "  allow: []                              # default\n"
                   "  deny: []                               # default\n"
                   "  probe: once                            # default\n"
                   "  options:\n"
                   "    openblas:\n"
                   "      threads: 2                         # tenon.yaml:2:33\n"
                   "device: cpu:0                            # --device cpu:0\n"
                   "precision: float32                       # default\n",
                   0) == 0);
  CHECK(contains(text, "\nseed: 3                                  # tenon.yaml:3:7\n"));
}

TEST_CASE("config: the schema documents every key and is a valid configuration of defaults") {
  const std::string schema = config_schema();
  CAPTURE(schema);
  const Config config = config_from_text(schema, "schema.yaml");
  CHECK(to_yaml(config, false) == to_yaml(Config(), false));
  for (const ConfigKey& key : config_keys()) {
    CAPTURE(key.path);
    CHECK(std::string(key.help).size() > 10);
    CHECK(contains(schema, std::string("# ") + key.help + " (" + key.type));
  }
  CHECK(config_keys().size() == 27);
}

TEST_CASE("config: an error has file, line and key") {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row rows[] = {
      {"device: cpu\nprecison: tf32\n", "tenon.yaml:2:1: unknown key 'precison'; did you mean 'precision'?"},
      {"backends:\n  usee: [a]\n", "tenon.yaml:2:3: unknown key 'backends.usee'; did you mean 'backends.use'?"},
      {"memory: {growht: true}\n", "tenon.yaml:1:10: unknown key 'memory.growht'; did you mean 'memory.growth'?"},
      {"backends:\n  use: {cuda: 1}\n", "tenon.yaml:2:8: key 'backends.use': expected a list of names, got a map"},
      {"backends:\n  use: [cuda, cuda]\n", "tenon.yaml:2:8: key 'backends.use': 'cuda' is given twice"},
      {"backends:\n  use: [CUDA]\n",
       "tenon.yaml:2:8: key 'backends.use': 'CUDA' is not a backend name; expected a lower-case letter, then lower-case letters, digits "
       "and '_'"},
      {"backends: [cuda]\n", "tenon.yaml:1:11: key 'backends': expected a map, got a list"},
      {"backends: {options: {openblas: 2}}\n", "tenon.yaml:1:32: key 'backends.options.openblas': expected a map, got '2'"},
      {"backends: {options: {openblas: {threads: [2]}}}\n",
       "tenon.yaml:1:42: key 'backends.options.openblas.threads': expected the value of an option, got a list"},
      {"backends: {options: {openblas: {a.b: 2}}}\n",
       "tenon.yaml:1:38: key 'backends.options.openblas.a.b': 'a.b' is not an option name; expected letters, digits, '_' and '-'"},
      {"backends: {search: [{a: 1}]}\n", "tenon.yaml:1:21: key 'backends.search[0]': expected a path, got a map"},
      {"device: gpu:x\n",
       "tenon.yaml:1:9: key 'device': device 'gpu:x': index 'x' is not a non-negative integer; expected auto, cpu, gpu, "
       "cpu:N, gpu:N, <backend>:N, <backend>:uuid=..., <backend>:pci=... or a TensorFlow name such as /device:GPU:0"},
      {"precision: float16\n",
       "tenon.yaml:1:12: key 'precision': expected one of float32, tf32, mixed_bfloat16, mixed_float16, got 'float16'; "
       "did you mean 'mixed_float16'?"},
      {"fallback: never\n", "tenon.yaml:1:11: key 'fallback': expected one of error, warn, allow, got 'never'"},
      {"fallback_ops: {Rlu: warn}\n", "tenon.yaml:1:21: key 'fallback_ops.Rlu': there is no op 'Rlu'; did you mean 'Relu'?"},
      {"fallback_ops: {relu: warn}\n", "tenon.yaml:1:22: key 'fallback_ops.relu': there is no op 'relu'; did you mean 'Relu'?"},
      {"fallback_ops: {Relu: maybe}\n", "tenon.yaml:1:22: key 'fallback_ops.Relu': expected one of error, warn, allow, got 'maybe'"},
      {"soft_placement: 1\n", "tenon.yaml:1:17: key 'soft_placement': expected true or false, got '1'"},
      {"seed: -1\n", "tenon.yaml:1:7: key 'seed': expected an integer of at least 0, got '-1'"},
      {"seed:\n", "tenon.yaml:1:1: key 'seed': expected an integer of at least 0, got nothing"},
      {"threads: two\n", "tenon.yaml:1:10: key 'threads': expected an integer in [0, 4096], got 'two'"},
      {"threads: 5000\n", "tenon.yaml:1:10: key 'threads': expected an integer in [0, 4096], got '5000'"},
      {"logging: {level: verbose}\n",
       "tenon.yaml:1:18: key 'logging.level': expected one of off, error, warning, info, debug, got 'verbose'"},
      {"check_numerics: output\n",
       "tenon.yaml:1:17: key 'check_numerics': expected one of off, outputs, all, got 'output'; did you mean 'outputs'?"},
      {"fusion: ful\n", "tenon.yaml:1:9: key 'fusion': expected one of off, elementwise, full, got 'ful'; did you mean 'full'?"},
      {"memory: {limit_mb: -1}\n", "tenon.yaml:1:20: key 'memory.limit_mb': expected an integer of at least 0, got '-1'"},
      {"placement: {match: a, device: cpu}\n", "tenon.yaml:1:12: key 'placement': expected a list of {match, device}, got a map"},
      {"placement: [{mach: a, device: cpu}]\n", "tenon.yaml:1:14: placement[0]: unknown key 'mach'; did you mean 'match'?"},
      {"placement: [{match: a}]\n", "tenon.yaml:1:13: placement[0]: key 'device' is missing; expected a device name"},
      {"placement: [{match: '', device: cpu}]\n",
       "tenon.yaml:1:21: placement[0]: key 'match': is empty and would match nothing; '*' matches everything"},
      {"placement: [{match: a, device: 'cpu 0'}]\n",
       "tenon.yaml:1:32: placement[0]: key 'device': device 'cpu 0': it contains a space; expected auto, cpu, gpu, cpu:N, gpu:N, "
       "<backend>:N, <backend>:uuid=..., <backend>:pci=... or a TensorFlow name such as /device:GPU:0"},
      {"virtual: [{of: auto, count: 2}]\n", "tenon.yaml:1:16: virtual[0]: key 'of': 'auto' does not name one device to divide"},
      {"virtual: [{of: cpu}]\n", "tenon.yaml:1:11: virtual[0]: key 'count' is missing; expected an integer in [1, 64]"},
      {"virtual: [{of: cpu, count: 65}]\n", "tenon.yaml:1:28: virtual[0]: key 'count': expected an integer in [1, 64], got '65'"},
      {"virtual: [cpu]\n", "tenon.yaml:1:11: key 'virtual[0]': expected a map, got 'cpu'"},
      {"device: cpu\ndevice: gpu\n", "tenon.yaml:2:1: key 'device' is given twice; first at line 1"},
      {"memory:\n\tlimit_mb: 1\n", "tenon.yaml:2:1: tab character used for indentation; YAML expects spaces"},
      {"", "tenon.yaml:1:1: the file is empty; expected keys and values"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(config_error(row.text) == row.message);
  }
}

TEST_CASE("config: overrides set any key, and their errors name the override") {
  Config config;
  const Origin set = {Origin::Kind::command_line, "--set x"};
  apply_override(config, "memory.limit_mb", "64", set);
  apply_override(config, "backends.options.openblas.threads", "2", set);
  apply_override(config, "backends.use", "[cuda, openblas]", set);
  apply_override(config, "fallback_ops.Relu", "warn", set);
  apply_override(config, "placement", "[{match: a*, device: cpu}]", set);
  CHECK(config.memory.limit_mb == 64);
  CHECK(config.backends.options.at("openblas").at("threads") == "2");
  CHECK(config.backends.use.size() == 2);
  CHECK(config.fallback_for("Relu") == Fallback::warn);
  CHECK(config.placement.at(0).match == "a*");
  const auto wrong = [&](const char* key, const char* value) {
    return message_of([&] { apply_override(config, key, value, {Origin::Kind::command_line, std::string("--set ") + key + "=" + value}); });
  };
  CHECK(wrong("memory.limit", "1") == "--set memory.limit=1: unknown key 'memory.limit'; did you mean 'memory.limit_mb'?");
  CHECK(wrong("divice", "cpu") == "--set divice=cpu: unknown key 'divice'; did you mean 'device'?");
  CHECK(wrong("threads", "x") == "--set threads=x: key 'threads': expected an integer in [0, 4096], got 'x'");
  CHECK(wrong("memory", "3") == "--set memory=3: key 'memory': expected a map, got '3'");
  CHECK(wrong("device.index", "3") == "--set device.index=3: key 'device': expected a device name, got a map");
  // The path of a dedicated option is text, whatever YAML would parse it as.
  apply_override(config, "logging.file", "/tmp/a: b # c", {Origin::Kind::command_line, "--log-file"}, true);
  CHECK(config.logging.file == rooted("/tmp/a: b # c"));
}

TEST_CASE_FIXTURE(InFolder, "config: precedence is API, command line, environment, YAML, default, in every combination") {
  const std::string file = folder.write("tenon.yaml", "device: yaml_device\nlogging: {level: error}\n");
  for (unsigned mask = 0; mask < 16; ++mask) {
    CAPTURE(mask);
    std::map<std::string, std::string> variables;
    ConfigSources sources;
    std::string device = "auto", origin = "default";
    if (mask & 1u) {
      sources.file = file;
      device = "yaml_device";
      origin = file + ":1:9";
    }
    if (mask & 2u) {
      variables["TENON_DEVICE"] = device = "environment_device";
      origin = "environment TENON_DEVICE";
    }
    if (mask & 4u) {
      device = "cli_device";
      sources.command_line.push_back({"device", device, "--device cli_device", true});
      origin = "--device cli_device";
    }
    if (mask & 8u) {
      device = "api_device";
      sources.api.push_back({"device", device});
      origin = "API device=api_device";
    }
    sources.environment = environment(variables);
    const Config config = resolve_config(sources);
    CHECK(config.device == device);
    CHECK(config.origin_of("device") == origin);
    CHECK(config.logging.level == (mask & 1u ? LogLevel::error : LogLevel::warning));
  }
}

TEST_CASE_FIXTURE(InFolder,
                  "config: TENON_CONFIG names the file unless one is given; TENON_LOG sets the level; empty variables are ignored") {
  const std::string from_variable = folder.write("a.yaml", "device: cpu:1\nthreads: 3\n");
  const std::string given = folder.write("b.yaml", "device: cpu:2\n");
  ConfigSources sources;
  sources.environment = environment({{"TENON_CONFIG", from_variable}, {"TENON_LOG", "debug"}, {"TENON_DEVICE", ""}});
  Config config = resolve_config(sources);
  CHECK(config.device == "cpu:1");
  CHECK(config.threads == 3);
  CHECK(config.logging.level == LogLevel::debug);
  CHECK(config.origin_of("logging.level") == "environment TENON_LOG");
  sources.file = given;
  config = resolve_config(sources);
  CHECK(config.device == "cpu:2");
  CHECK(config.threads == 0);

  sources = {};
  sources.environment = environment({{"TENON_CONFIG", "/nowhere/t.yaml"}});
  CHECK_ERROR("environment TENON_CONFIG: /nowhere/t.yaml: file not found", resolve_config(sources));
  sources.environment = environment({{"TENON_DEVICE", "gpu:"}});
  CHECK(message_of([&] {
          resolve_config(sources);
        }).rfind("environment TENON_DEVICE: key 'device': device 'gpu:': the index after ':' is missing", 0) == 0);
  sources.environment = environment({{"TENON_LOG", "loud"}});
  CHECK_ERROR("environment TENON_LOG: key 'logging.level': expected one of off, error, warning, info, debug, got 'loud'",
              resolve_config(sources));
}

TEST_CASE_FIXTURE(InFolder, "config: an overlay wins for its own keys only, and an override in it beats the environment") {
  ConfigSources sources;
  sources.file = folder.write("tenon.yaml", "device: cpu:1\nseed: 4\nbackends: {options: {openblas: {threads: 2, library: x}}}\n");
  sources.environment = environment({{"TENON_DEVICE", "cpu:3"}});
  Config layer = config_from_text("seed: 5\nbackends: {options: {openblas: {threads: 1}, cuda: {kernels: naive}}}\n", "train.yaml");
  sources.layers = {layer};
  sources.trust_layers = true;
  Config config = resolve_config(sources);
  CHECK(config.device == "cpu:3");
  CHECK(config.seed == 5);
  CHECK(config.origin_of("seed") == "train.yaml:1:7");
  CHECK(config.backends.options.at("openblas").at("threads") == "1");
  CHECK(config.backends.options.at("openblas").at("library") == "x");
  CHECK(config.backends.options.at("cuda").at("kernels") == "naive");

  apply_override(layer, "device", "cpu:4", {Origin::Kind::command_line, "--set device=cpu:4"});
  sources.layers = {layer};
  config = resolve_config(sources);
  CHECK(config.device == "cpu:4");
  CHECK(config.origin_of("device") == "--set device=cpu:4");
}

TEST_CASE_FIXTURE(InFolder, "config: a training file cannot decide which native code runs, unless it is trusted") {
  ConfigSources sources;
  sources.environment = environment({{"TENON_BACKEND_PROBE", "always"}});
  sources.layers = {config_from_text("backends: {search: [.]}\n", "train.yaml")};
  CHECK_ERROR(
      "train.yaml:1:20: key 'backends.search': decides which native code this process runs; expected it in your own configuration "
      "(--config, "
      "TENON_CONFIG), the environment or the command line, got it in a file that describes a model; move it there, or pass --trust "
      "(ConfigSources::trust_layers) if you trust this file",
      resolve_config(sources));
  sources.trust_layers = true;
  CHECK(resolve_config(sources).backends.search.size() == 1);
  sources.trust_layers = false;
  sources.layers = {config_from_text("backends: {probe: never}\n", "train.yaml")};
  CHECK_ERROR_CONTAINS("train.yaml:1:19: key 'backends.probe': decides which native code", resolve_config(sources));

  sources.layers = {config_from_text("backends: {options: {cuda: {libraries: .}}}\n", "train.yaml")};
  CHECK_ERROR_CONTAINS("train.yaml:1:40: key 'backends.options.cuda.libraries': decides which native code", resolve_config(sources));
  sources.layers = {config_from_text("backends: {use: [cuda], allow: [cuda], deny: [openblas]}\n", "train.yaml")};
  CHECK(resolve_config(sources).backends.use == std::vector<std::string>{"cuda"});  // a choice among the user's own

  // The user's own file and command line may.
  sources.layers = {Config()};
  apply_override(sources.layers[0], "backends.search", "[/mine]", {Origin::Kind::command_line, "--set backends.search=[/mine]"});
  sources.file = folder.write("tenon.yaml", "backends: {probe: never}\n");
  CHECK(resolve_config(sources).backends.search == std::vector<std::string>{rooted("/mine")});
  CHECK(resolve_config(sources).backends.probe == BackendProbe::always);
}

TEST_CASE("config: an origin of lower precedence never overwrites, yet is validated") {
  Config config;
  apply_override(config, "threads", "2", {Origin::Kind::api, "API"});
  apply_override(config, "threads", "3", {Origin::Kind::environment, "environment X"});
  CHECK(config.threads == 2);
  CHECK_ERROR("environment X: key 'threads': expected an integer in [0, 4096], got 'x'",
              apply_override(config, "threads", "x", {Origin::Kind::environment, "environment X"}));
}

TEST_CASE_FIXTURE(InFolder, "config: memory without growth needs a size") {
  ConfigSources sources;
  sources.environment = environment({});
  sources.file = folder.write("tenon.yaml", "memory: {growth: false}\n");
  CHECK_ERROR(sources.file +
                  ":1:18: key 'memory.growth': false allocates memory.limit_mb at the start, but "
                  "memory.limit_mb is not set; set it, or leave memory.growth true",
              resolve_config(sources));
  sources.command_line = {{"memory.limit_mb", "64"}};
  CHECK(resolve_config(sources).memory.limit_mb == 64);
}

TEST_CASE("config: a missing file is reported by name") {
  CHECK_ERROR("/nowhere/tenon.yaml: file not found", load_config("/nowhere/tenon.yaml"));
}
