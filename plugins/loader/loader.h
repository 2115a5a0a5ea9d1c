// SPDX-License-Identifier: Apache-2.0
// loader/loader.h - finds, checks, opens and reports backends. Knows the ABI, not the runtime.
//
//   loader::Options options;
//   options.places = loader::default_places(api, command_line, yaml);
//   options.make_host = ...;
//   loader::Result result = loader::load(options);
//
// Every candidate leaves a Record, the good ones a Backend too. load() throws for no candidate's fault.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/backend.h>

namespace tenon::loader {

/// How far a candidate came. Each stage includes those before it.
enum class Stage {
  named,       ///< it was requested; nothing has been checked
  found,       ///< it is a readable file, neither shadowed nor denied
  opened,      ///< the checks before opening passed and the operating system mapped it
  symbol,      ///< tenon_backend_query is there
  negotiated,  ///< versions, name and sizes agree
  self_check,  ///< the query is pure and repeatable
  created,     ///< `create` succeeded and the table is complete
  devices,     ///< it has at least one device
};
const char* name_of(Stage stage);

/// One device, as the record of its backend keeps it.
struct DeviceSummary {
  std::string name;  ///< "openblas:0"
  std::string description;
  std::string identity;    ///< stable across runs
  std::uint32_t kind = 0;  ///< TENON_DEVICE_*
  std::uint64_t memory_size_bytes = 0;
};

/// A library that a candidate needs and that was not found.
struct MissingLibrary {
  std::string name;                  ///< "libcudart.so.13"
  std::filesystem::path needed_by;   ///< the plugin, or a library it needs
  std::vector<std::string> folders;  ///< the folders that were searched, in order
};

/// The outcome of one candidate. Holds no pointer into the library.
struct Record {
  std::filesystem::path path;  ///< empty for a backend registered in the process
  std::string name;            ///< from the file name, later from the backend itself
  std::string origin;          ///< where its path comes from: "API", "command line", "TENON_BACKEND_PATH", "backends.search", ...
  Stage reached = Stage::named;
  tenon_status status = TENON_OK;
  bool named = false;  ///< the file itself was given, not its folder
  bool healthy = false;
  bool shadowed = false;                ///< another candidate of that name was found earlier
  bool denied = false;                  ///< by the allow or deny list
  std::string text;                     ///< why it is not healthy; never empty then
  std::string remedy;                   ///< what to do about it; never empty then
  std::vector<std::string> warnings;    ///< about what the backend does
  std::vector<std::string> exposures;   ///< who else may change the file; not the backend's fault
  std::vector<MissingLibrary> missing;  ///< the libraries that `text` names, for programs
  std::string probed;                   ///< a sentence, if a child process has loaded it first just now
  std::string output;                   ///< what it printed, if it failed in a child process, or for tenon doctor

  // Known from `negotiated` on.
  std::string version;
  std::string build_id;
  std::string vendor;
  std::string description;
  std::string requirements;
  std::int32_t priority = 0;
  std::uint32_t flags = 0;  ///< TENON_BACKEND_*
  std::uint32_t abi_major = 0;
  std::uint32_t abi_minor_lowest = 0;  ///< the range the plugin states
  std::uint32_t abi_minor_highest = 0;
  std::uint32_t abi_minor = 0;  ///< the minor that both sides use
  // Known from `devices` on.
  std::vector<DeviceSummary> devices;
};

/// One paragraph to read: name, path, stage, reason, remedy, warnings.
std::string describe(const Record& record);

/// Where to look: a folder, whose libtenon_backend_<name>.so (Windows: tenon_backend_<name>.dll) are candidates, or one file.
struct SearchPlace {
  std::filesystem::path path;
  std::string origin;
};

/// The outcome of one place.
struct PlaceRecord {
  std::filesystem::path path;
  std::string origin;
  std::string text;            ///< "2 candidates", "no such folder", ...
  std::size_t candidates = 0;  ///< files that have a record; 1 for a file that was given and does not exist
};

/// An op version that core and plugin define differently: it may not be used.
struct SwitchedOff {
  tenon_op op;
  std::uint32_t version;
  std::string reason;
};

/// When a file is loaded in a child process before it is opened here (ADR 32). once: before its first use, as known_answer() tells.
enum class ProbeMode { always, once, never };

struct ProbeOptions {
  ProbeMode mode = ProbeMode::never;
  std::filesystem::path helper;  ///< the program tenon-probe
  std::filesystem::path cache;   ///< the folder of answers; empty: none are kept
  double timeout_seconds = 30;   ///< a device that is slow to start takes ten
};

struct Options {
  std::vector<SearchPlace> places;
  ProbeOptions probe;
  /// Globs (* and ?) over names, or over whole paths if they contain a '/'. An empty allow list allows all; deny wins.
  std::vector<std::string> allow;
  std::string allow_key = "backends.allow";  ///< the key that set `allow`, for messages
  std::vector<std::string> deny;
  /// The core's TENON_OP_DIGESTS. Outlives the call.
  std::span<const tenon_op_digest> core_digests;
  /// The services a backend gets, created after the negotiation; they must outlive the backend. `abi_minor` is the minor that the host must
  /// state.
  std::function<const tenon_host*(const tenon_backend_info& info, std::uint32_t abi_minor)> make_host;
  /// Opens a copy of each file under another name, which is removed at once. The system takes a file that was opened before, by its name,
  /// for the one it has mapped, even if it was replaced since.
  bool opens_copies = false;
  /// Backends that are part of the process. They come before every file.
  std::vector<std::pair<std::string, tenon_backend_query_fn>> registered;
};

/// A created backend and everything known about it. Destruction shuts it down, then destroys it; the library stays mapped unless the
/// backend declares itself unloadable. The owner destroys all objects made through the table before.
/// Threads  every member is const, so it may be shared.
class Backend {
 public:
  struct Parts;
  explicit Backend(std::unique_ptr<Parts> parts);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const std::string& name() const;
  const Record& record() const;
  std::uint32_t abi_minor() const;
  /// Complete: fields unknown to the plugin's header are zero, array elements have our size.
  const tenon_backend_info& info() const;
  /// Complete, including its optional blocks: an unknown slot is NULL.
  const tenon_backend_table& table() const;
  tenon_backend* handle() const;
  /// By index, complete; strings live as long as the backend. Empty if there is no device; record().text then says why.
  std::span<const tenon_device_info> devices() const;
  std::span<const SwitchedOff> switched_off() const;
  /// Why this op version may not be used; NULL if it may.
  const SwitchedOff* find_switched_off(tenon_op op, std::uint32_t version) const;

 private:
  std::unique_ptr<Parts> parts_;
};

struct Result {
  std::vector<Record> records;        ///< in the order in which candidates were found
  std::vector<std::string> warnings;  ///< about the loading as a whole
  std::vector<PlaceRecord> places;
  /// All backends that were created, in the same order. One without devices is included for its capabilities, but is not healthy.
  std::vector<std::shared_ptr<Backend>> backends;
};

/// Loads the backends that the options name.
/// Threads  may be called from several threads; each call creates its own backends.
Result load(const Options& options);

/// The places in their order: those of the API with their origins, command line, environment TENON_BACKEND_PATH, YAML `backends.search`,
/// the folder next to the library. The environment is ignored under elevated privilege. A leading ~/ is the home directory. Never the
/// working directory.
std::vector<SearchPlace> default_places(std::span<const SearchPlace> api, std::span<const std::filesystem::path> command_line,
                                        std::span<const std::filesystem::path> yaml);

/// $XDG_CACHE_HOME/tenon, else ~/.cache/tenon; on Windows %LOCALAPPDATA%\\tenon. Empty if there is neither, or under elevated privilege,
/// where the environment is not the user's to trust.
std::filesystem::path cache_folder();

/// The helper that is installed beside the folder next to the library, and `probes` in the cache folder.
ProbeOptions default_probe(ProbeMode mode);

/// The host's description for plugins: ABI range, build id, platform, sanitizer.
const tenon_host_info& host_info();

/// "INCOMPATIBLE", or "status 99" for a code this header does not know.
std::string status_name(tenon_status status);

/// SHA-256 of a file in lower-case hexadecimal, as sha256sum prints it; empty if it cannot be read.
std::string checksum(const std::filesystem::path& file);

}  // namespace tenon::loader
