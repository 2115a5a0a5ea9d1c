// SPDX-License-Identifier: Apache-2.0
// tenon/config.h - user configuration: backend search paths, device, numerics, logging.
// Threads  any; a Config is a value.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/api.h>

namespace tenon {

/// Arithmetic of a run. float32: operands keep their width. mixed_*: products of f32 values are
/// computed in 16 bits (ADR 17).
enum class Precision { float32, tf32, mixed_bfloat16, mixed_float16 };
/// What to do with an op that the chosen device does not support.
enum class Fallback { error, warn, allow };
/// Which values a run checks for NaN and infinity.
enum class CheckNumerics { off, outputs, all };
/// How far backends may fuse nodes.
enum class Fusion { off, elementwise, full };
/// Whether runs are recorded and replayed on devices that can.
enum class Capture { off, automatic };
/// When a backend file is first loaded in a child process, which shows whether it crashes, hangs or
/// ends the process. once: before its first use, whose answer is kept in the user's cache folder.
enum class BackendProbe { always, once, never };
/// The lowest severity that is logged.
enum class LogLevel { off, error, warning, info, debug };

/// The name used in YAML: "float32".
TENON_API const char* name_of(Precision value);
TENON_API const char* name_of(Fallback value);
TENON_API const char* name_of(CheckNumerics value);
TENON_API const char* name_of(Fusion value);
TENON_API const char* name_of(Capture value);
TENON_API const char* name_of(BackendProbe value);
TENON_API const char* name_of(LogLevel value);

/// Places the ops and layers whose name matches `match` on `device`. In `match`, `*` stands for any
/// characters and `?` for one.
struct PlacementRule {
  std::string match;
  std::string device;
  bool operator==(const PlacementRule&) const = default;
};

/// Replaces one device by `count` virtual ones.
struct VirtualDevice {
  std::string of;
  int count = 1;
  std::int64_t limit_mb = 0;  ///< memory limit of each; 0: no limit
  bool operator==(const VirtualDevice&) const = default;
};

/// Where the value of a key came from. A weaker origin never overwrites a stronger one.
struct Origin {
  /// From weakest to strongest.
  enum class Kind { fallback, yaml, environment, command_line, api };
  Kind kind = Kind::fallback;
  std::string text;  ///< "tenon.yaml:3:9", "environment TENON_DEVICE", "--set device=cpu"
};

/// The configuration, with one field per entry of config_keys(), which documents meaning, type,
/// default and range.
struct TENON_API Config {
  /// Key `backends`.
  struct Backends {
    std::vector<std::string> search;
    std::vector<std::string> use;
    std::vector<std::string> allow;
    std::vector<std::string> deny;
    BackendProbe probe = BackendProbe::once;
    /// backend -> option -> value as text
    std::map<std::string, std::map<std::string, std::string>> options;
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
  int thread_spin_us = 200;
  Logging logging;
  bool log_device_placement = false;
  bool sync_debug = false;
  CheckNumerics check_numerics = CheckNumerics::off;
  Fusion fusion = Fusion::full;
  Capture capture = Capture::automatic;
  Memory memory;
  std::vector<PlacementRule> placement;
  std::vector<VirtualDevice> virtual_devices;  ///< key `virtual`

  /// Full key of each value that is not a default ("backends.options.openblas.threads") -> where it
  /// came from.
  std::map<std::string, Origin> origins;

  /// The policy for an op: its entry in `fallback_ops`, or else `fallback`.
  Fallback fallback_for(const std::string& op) const;
  /// Where the value of a key came from; "default" if it was not set.
  std::string origin_of(const std::string& key) const;
};

/// Documentation of one key. The reader, the writer, overrides and the schema text all use this
/// table.
struct ConfigKey {
  const char* path;           ///< "memory.limit_mb"
  const char* type;           ///< "integer", "list of names"
  const char* default_value;  ///< as YAML
  const char* range;          ///< empty if the type determines it
  const char* help;           ///< one line
};
/// All keys.
TENON_API std::span<const ConfigKey> config_keys();
/// The table as commented YAML, itself a valid configuration with every key at its default.
TENON_API std::string config_schema();

// Errors of all functions below: Error with file, line, column and key: "tenon.yaml:7:3: unknown
// key 'precison'; did you mean 'precision'?".

/// Reads a YAML file over the defaults.
TENON_API Config load_config(const std::string& path);
/// The same for YAML text. `name` is the file name in messages; relative paths start from `folder`
/// (empty: the working directory).
TENON_API Config config_from_text(const std::string& text, const std::string& name = "<text>",
                                  const std::string& folder = "");

/// Sets "key.path" to a value written as YAML ("3", "[cuda, openblas]"), or to the plain text or
/// number `value` if `literal`. Lists are replaced, maps gain the entry. Does nothing if the
/// present value has a stronger origin. Messages start with the origin's text.
TENON_API void apply_override(Config& config, const std::string& key, const std::string& value,
                              const Origin& origin, bool literal = false);

/// Copies every value that has an origin in `layer` into `base`, unless the origin there is
/// stronger.
TENON_API void merge_config(Config& base, const Config& layer);

/// Canonical YAML of every key, optionally with its origin as a comment.
/// config_from_text(to_yaml(c)) has the same values.
TENON_API std::string to_yaml(const Config& config, bool with_origins = true);

/// One key that is set outside YAML.
struct ConfigOverride {
  std::string key;
  std::string value;
  /// its name in messages: "--device cpu"; empty: "--set key=value" or "API key=value"
  std::string text = "";
  bool literal = false;  ///< the value is plain text or a number, not YAML (--device, --data)
};

/// Looks up an environment variable.
using Environment = std::function<std::optional<std::string>(const char* name)>;
/// The environment of this process; nothing under elevated privilege.
TENON_API std::optional<std::string> process_environment(const char* name);

/// All sources of configuration, strongest first: api, command line, environment (TENON_DEVICE,
/// TENON_BACKEND_PROBE, TENON_LOG), YAML, defaults.
struct ConfigSources {
  std::vector<ConfigOverride> api;
  std::vector<ConfigOverride> command_line;
  Environment environment = process_environment;
  /// The YAML file; empty: the one that TENON_CONFIG names, or none.
  std::string file;
  /// YAML that overrides `file`, weakest first, such as the Config in a train.yaml.
  std::vector<Config> layers;
  /// Whether the YAML of `layers` may set the keys that decide which native code runs:
  /// backends.search, backends.probe and backends.options. Without it such a key is an error.
  bool trust_layers = false;
};
/// Combines all sources.
TENON_API Config resolve_config(const ConfigSources& sources = {});

}  // namespace tenon
