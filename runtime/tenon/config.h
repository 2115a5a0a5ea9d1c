// tenon/config.h - what a user may set: where backends are, which device, how numbers are treated, what is logged. Threads: any; a Config
// is a value.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon {

/// Arithmetic of a run. float32 is strict: the operands' own width. mixed_*: products of f32 values in 16 bits (ADR 17).
enum class Precision { float32, tf32, mixed_bfloat16, mixed_float16 };
/// What happens to an op that the chosen device cannot do.
enum class Fallback { error, warn, allow };
/// Which values a run watches for NaN and infinity.
enum class CheckNumerics { off, outputs, all };
/// How far backends may fuse nodes.
enum class Fusion { off, elementwise, full };
/// Whether runs are recorded and replayed, on devices that can.
enum class Capture { off, automatic };
/// The least severe line that is logged.
enum class LogLevel { off, error, warning, info, debug };

/// As YAML has it: "float32".
const char* name_of(Precision value);
const char* name_of(Fallback value);
const char* name_of(CheckNumerics value);
const char* name_of(Fusion value);
const char* name_of(Capture value);
const char* name_of(LogLevel value);

/// Ops and layers whose name matches go to a device. Inside `match`, `*` stands for any run of characters and `?` for one.
struct PlacementRule {
  std::string match;
  std::string device;
  bool operator==(const PlacementRule&) const = default;
};

/// `count` devices of their own in the place of one.
struct VirtualDevice {
  std::string of;
  int count = 1;
  std::int64_t limit_mb = 0;  ///< memory of each; 0: no limit
  bool operator==(const VirtualDevice&) const = default;
};

/// Where the value of a key came from. A stronger origin is never overwritten by a weaker one.
struct Origin {
  /// From the weakest to the strongest.
  enum class Kind { fallback, yaml, environment, command_line, api };
  Kind kind = Kind::fallback;
  std::string text;  ///< "tenon.yaml:3:9", "environment TENON_DEVICE", "--set device=cpu"
};

/// One field per key of the table that config_keys() returns; what each means, its type, default and range stand there.
struct Config {
  /// Key `backends`.
  struct Backends {
    std::vector<std::string> search;
    std::vector<std::string> use;
    std::vector<std::string> allow;
    std::vector<std::string> deny;
    std::map<std::string, std::map<std::string, std::string>> options;  ///< backend -> knob -> value as text
  };
  /// Key `logging`.
  struct Logging {
    LogLevel level = LogLevel::warning;
    std::string file;
  };
  /// Key `memory`.
  struct Memory {
    std::int64_t limit_mb = 0;
    bool growth = true;
    bool pool = true;
  };

  Backends backends;
  std::string device = "auto";
  Precision precision = Precision::float32;
  Fallback fallback = Fallback::error;
  std::map<std::string, Fallback> fallback_ops;  ///< op -> policy
  bool soft_placement = false;
  bool deterministic = false;
  std::uint64_t seed = 0;
  int threads = 0;
  Logging logging;
  bool log_device_placement = false;
  bool sync_debug = false;
  CheckNumerics check_numerics = CheckNumerics::off;
  Fusion fusion = Fusion::full;
  Capture capture = Capture::automatic;
  Memory memory;
  std::vector<PlacementRule> placement;
  std::vector<VirtualDevice> virtual_devices;  ///< key `virtual`

  /// Full key of each value that is not a default ("backends.options.openblas.threads") -> where it came from.
  std::map<std::string, Origin> origins;

  /// The policy for an op: its own, or the general one.
  Fallback fallback_for(const std::string& op) const;
  /// "default" for a key that nobody set.
  std::string origin_of(const std::string& key) const;
};

/// Documentation of one key. The reader, the writer, overrides and the schema text all run over this one table.
struct ConfigKey {
  const char* path;           ///< "memory.limit_mb"
  const char* type;           ///< "integer", "list of names"
  const char* default_value;  ///< as YAML
  const char* range;          ///< "" where the type says it all
  const char* help;           ///< one line
};
/// The table.
std::span<const ConfigKey> config_keys();
/// The table as commented YAML that is itself a valid configuration: every key with its default.
std::string config_schema();

/// Errors of all that follows  Error with file, line, column and key: "tenon.yaml:7:3: unknown key 'precison'; did you mean 'precision'?".

/// Reads a YAML file over the defaults.
Config load_config(const std::string& path);
/// The same for a text; `name` stands for the file in messages, `folder` is what relative paths start from ("": the working directory).
Config config_from_text(const std::string& text, const std::string& name = "<text>", const std::string& folder = "");

/// Sets "key.path" to a value written as YAML ("3", "[cuda, openblas]"), or to one text or number as it is if `literal`; lists are
/// replaced, maps gain the entry. Nothing happens if the present value has a stronger origin. Messages start with the origin's text.
void apply_override(Config& config, const std::string& key, const std::string& value, const Origin& origin, bool literal = false);

/// Every value that `layer` has an origin for, put into `base` unless the origin there is stronger.
void merge_config(Config& base, const Config& layer);

/// Canonical YAML of every key, each with its origin as a comment if asked. config_from_text(to_yaml(c)) has the same values.
std::string to_yaml(const Config& config, bool with_origins = true);

/// One key that is set from outside the YAML.
struct ConfigOverride {
  std::string key;
  std::string value;
  std::string text = "";  ///< how messages call it: "--device cpu"; empty: "--set key=value" or "API key=value"
  bool literal = false;   ///< the value is one text or number as it is, not YAML: that of --device or --data
};

/// Looks up an environment variable. The default one ignores the environment under elevated privilege.
using Environment = std::function<std::optional<std::string>(const char* name)>;
/// The environment of this process; nothing under elevated privilege.
std::optional<std::string> process_environment(const char* name);

/// Everything that has a say, strongest first: api, command line, environment (TENON_DEVICE, TENON_LOG), YAML, defaults.
struct ConfigSources {
  std::vector<ConfigOverride> api;
  std::vector<ConfigOverride> command_line;
  Environment environment = process_environment;
  /// The YAML file; empty: the one TENON_CONFIG names, or none.
  std::string file;
  /// Further YAML over that file, weakest first: the Config a train.yaml holds.
  std::vector<Config> layers;
};
/// The configuration that all of them make.
Config resolve_config(const ConfigSources& sources = {});

}  // namespace tenon
