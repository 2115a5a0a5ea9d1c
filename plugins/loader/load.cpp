// SPDX-License-Identifier: Apache-2.0
// Takes each candidate through the stages and writes its record.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "loader/backend.h"
#include "loader/check.h"
#include "loader/error_text.h"
#include "loader/find.h"
#include "loader/guarded_call.h"
#include "loader/load_error.h"
#include "loader/loader.h"
#include "loader/negotiate.h"
#include "loader/probe.h"
#include "loader/process_state_guard.h"
#include "loader/self_check.h"
#include "loader/temporary_copy.h"
#include "platform/path.h"

namespace tenon::loader {
namespace {

const char* const tell_vendor = "report this to the plugin's vendor";

// More devices than any machine has.
constexpr std::uint32_t max_devices = 4096;

std::string text_of(const char* text) {
  return text ? text : "";
}

/// Runs call() under a ProcessStateGuard. An exception that escapes from the plugin becomes a LoadError.
/// `phase` is the subject of messages: "its query", "`create`".
template <class Call>
auto guarded_call(Record& record, const char* phase, Threads threads, Call&& call) {
  const ProcessStateGuard guard(record, phase, threads);
  try {
    return call();
  } catch (const LoadError&) {
    throw;
  } catch (...) {
    throw LoadError(TENON_INTERNAL, fmt::format("{} {}", phase, describe_exception()),
                    "no exception may leave a plugin; report this to its vendor");
  }
}

/// A failure that the plugin reported: its own text, with its requirements as the remedy.
LoadError own_failure(const char* phase, tenon_status status, const ErrorText& error, const tenon_backend_info& info) {
  std::string text = error.text(), remedy;
  if (text.empty()) {
    text = fmt::format("{} returned {} and gave no reason", phase, status_name(status));
    remedy = fmt::format("a failure without a reason is a bug in the plugin: {}", tell_vendor);
  } else if (info.requirements && *info.requirements) {
    remedy = fmt::format("make sure that what the backend needs is installed: {}", info.requirements);
  } else {
    remedy = "fix what the backend names, or remove it from backends.use";
  }
  return LoadError(status, text, remedy);
}

/// One call of the query. The plugin may know a larger struct than ours but must not write more than the size it is given.
tenon_status ask(tenon_backend_query_fn query, tenon_backend_info& out_info) {
  constexpr unsigned char untouched = 0xa5;
  struct {
    tenon_backend_info info;
    unsigned char beyond[256];
  } buffer{};
  std::memset(buffer.beyond, untouched, sizeof buffer.beyond);
  buffer.info.struct_size = sizeof buffer.info;
  const tenon_status status = query(&host_info(), &buffer.info);
  if (std::any_of(std::begin(buffer.beyond), std::end(buffer.beyond), [](unsigned char byte) { return byte != untouched; })) {
    throw LoadError(TENON_INTERNAL, fmt::format("its query wrote beyond the {} bytes it was given", sizeof buffer.info), tell_vendor);
  }
  out_info = buffer.info;
  return status;
}

void note_answer(const tenon_backend_info& info, Record& record) {
  record.name = info.name;
  record.version = text_of(info.version);
  record.vendor = text_of(info.vendor);
  record.description = text_of(info.description);
  record.requirements = text_of(info.requirements);
  record.priority = info.priority;
  record.flags = info.flags;
}

/// Asks, negotiates, checks the answer and keeps it.
void negotiate(tenon_backend_query_fn query, const Options& options, Backend::Parts& parts, Record& record) {
  tenon_backend_info sent{};
  const tenon_status status = guarded_call(record, "its query", Threads::forbidden, [&] { return ask(query, sent); });
  if (status != TENON_OK && status != TENON_INCOMPATIBLE) {
    throw LoadError(status, fmt::format("its query returned {}", status_name(status)), tell_vendor);
  }
  // The version is checked first: another major may define everything else differently.
  if (sent.struct_size >= offsetof(tenon_backend_info, flags)) {
    const tenon_backend_info head = completed(sent);
    record.abi_major = head.abi_major;
    record.abi_minor_lowest = head.abi_minor_lowest;
    record.abi_minor_highest = head.abi_minor_highest;
    record.build_id = text_of(head.build_id);
    record.abi_minor = parts.abi_minor = negotiate_version(host_info(), head);
  }
  parts.answer = complete_answer(sent);
  const tenon_backend_info& info = parts.answer.info;
  if (status == TENON_INCOMPATIBLE) {
    throw LoadError(status,
                    fmt::format("its query refuses this core (build '{}') although both support ABI {}.{}", host_info().build_id,
                                info.abi_major, parts.abi_minor),
                    tell_vendor);
  }
  check_answer(host_info(), info, record.warnings);
  const auto stated = backend_name_of(record.path);
  if (stated && *stated != info.name) {
    record.warnings.push_back(
        fmt::format("its file name says '{}', the backend calls itself '{}': the latter is used", *stated, info.name));
  }
  note_answer(info, record);
  parts.switched_off = compare_digests(options.core_digests, {info.digests, info.digest_count});
  for (const SwitchedOff& off : parts.switched_off) record.warnings.push_back(off.reason);
}

void check_self(tenon_backend_query_fn query, const Backend::Parts& parts, Record& record) {
  tenon_backend_info again{};
  const tenon_status status = guarded_call(record, "its second query", Threads::forbidden, [&] { return ask(query, again); });
  if (status != TENON_OK) {
    throw LoadError(TENON_INTERNAL, fmt::format("its query is not repeatable: OK at first, then {}", status_name(status)), tell_vendor);
  }
  if (const auto field = difference(parts.answer.info, complete_answer(again).info)) {
    throw LoadError(TENON_INTERNAL, fmt::format("its query is not repeatable: '{}' differs between two calls", *field), tell_vendor);
  }
}

void create(const Options& options, Backend::Parts& parts, Record& record) {
  const tenon_backend_info& info = parts.answer.info;
  const tenon_host* const host = options.make_host ? options.make_host(info, parts.abi_minor) : nullptr;
  if (!host) throw LoadError(TENON_INVALID_ARGUMENT, "there are no host services for it", "set loader::Options::make_host");
  ErrorText error;
  const tenon_backend_table* table = nullptr;
  const tenon_status status =
      guarded_call(record, "`create`", Threads::allowed, [&] { return info.create(host, &parts.handle, &table, error); });
  if (status != TENON_OK) throw own_failure("`create`", status, error, info);
  if (!parts.handle || !table) {
    throw LoadError(TENON_INTERNAL, fmt::format("`create` returned OK without {}", parts.handle ? "a table" : "a backend"), tell_vendor);
  }
  try {
    complete_table(*table, parts.table);
  } catch (const LoadError&) {
    if (TENON_HAS(table, tenon_backend_table, destroy) && table->destroy) {
      guarded_call(record, "`destroy`", Threads::allowed, [&] { table->destroy(parts.handle); });
    }
    throw;
  }
}

void find_devices(Backend::Parts& parts, Record& record) {
  const tenon_backend_table& table = parts.table.table;
  const tenon_backend_info& info = parts.answer.info;
  ErrorText error;
  std::uint32_t count = 0;
  tenon_status status =
      guarded_call(record, "device_count", Threads::allowed, [&] { return table.device_count(parts.handle, &count, error); });
  if (status != TENON_OK) throw own_failure("device_count", status, error, info);
  if (count == 0) {
    LoadError none = own_failure("device_count", TENON_DEVICE_NOT_FOUND, error, info);
    if (error.text().empty()) none.text = "it offers no device and gives no reason";
    throw none;
  }
  if (count > max_devices) {
    throw LoadError(TENON_INTERNAL, fmt::format("it reports {} devices, expected at most {}: the count was never set", count, max_devices),
                    tell_vendor);
  }
  std::vector<tenon_device_info> devices;
  std::vector<DeviceSummary> summaries;
  for (std::uint32_t index = 0; index < count; ++index) {
    ErrorText reason;
    tenon_device_info device{};
    device.struct_size = sizeof device;
    status = guarded_call(record, "device_info", Threads::allowed, [&] { return table.device_info(parts.handle, index, &device, reason); });
    if (status != TENON_OK) throw own_failure("device_info", status, reason, info);
    devices.push_back(completed(device));
    summaries.push_back(
        {fmt::format("{}:{}", record.name, index), text_of(device.name), text_of(device.identity), device.kind, device.memory_size_bytes});
  }
  parts.devices = std::move(devices);
  record.devices = std::move(summaries);
}

/// One call of load().
class Loading {
 public:
  explicit Loading(const Options& options) : options_(options) {}

  Result run() {
    for (const auto& [name, query] : options_.registered) validate({{}, name, "in the process", true}, query);
    for (const SearchPlace& place : options_.places) {
      PlaceRecord& record = result_.places.emplace_back();
      for (const Candidate& candidate : candidates_in(place, record)) {
        // A file found in two places is one candidate; a link to it is another.
        if (seen_.insert(candidate.path).second) validate(candidate, nullptr);
      }
    }
    return std::move(result_);
  }

 private:
  /// Takes one candidate to its devices or its LoadError. `query` is that of a registered backend, else NULL.
  void validate(const Candidate& candidate, tenon_backend_query_fn query) {
    Record record;
    record.path = candidate.path;
    record.name = candidate.name;
    record.origin = candidate.origin;
    record.named = candidate.named;
    auto parts = std::make_unique<Backend::Parts>();
    Backend::Parts& inside = *parts;  // stays valid when a Backend takes over the parts
    std::shared_ptr<Backend> backend;
    try {
      find(candidate, query == nullptr, record);
      if (!query) query = open(candidate.named, inside, record);
      record.reached = Stage::symbol;
      negotiate(query, options_, inside, record);
      claim(record);
      record.reached = Stage::negotiated;
      check_self(query, inside, record);
      record.reached = Stage::self_check;
      create(options_, inside, record);
      backend = std::make_shared<Backend>(std::move(parts));
      record.reached = Stage::created;
      find_devices(inside, record);
      record.reached = Stage::devices;
      record.healthy = true;
    } catch (const LoadError& refusal) {
      record.status = refusal.status;
      record.text = refusal.text;
      record.remedy = refusal.remedy;
      record.missing = refusal.missing;
    }
    if (backend) {
      inside.record = record;
      result_.backends.push_back(std::move(backend));
    }
    result_.records.push_back(std::move(record));
  }

  void find(const Candidate& candidate, bool is_file, Record& record) {
    if (is_file) check_readable(candidate.path);
    claim(record);
    record.reached = Stage::found;
  }

  tenon_backend_query_fn open(bool named, Backend::Parts& parts, Record& record) {
    check_library(record.path);
    check_writers(record.path, named);
    record.exposures = exposures_of(record.path);
    probe(options_.probe, record, result_);
    std::optional<TemporaryCopy> copy;
    if (options_.opens_copies) copy.emplace(record.path);
    const std::filesystem::path& file = copy ? copy->path() : record.path;
    parts.library = guarded_call(record, "opening it", Threads::forbidden, [&] { return std::make_unique<Library>(file); });
    record.reached = Stage::opened;
    return parts.library->query();
  }

  /// Reserves the record's name for this candidate, unless the lists exclude it or an earlier candidate has it. Called for the name of the
  /// file and again for the name that the backend states.
  void claim(Record& record) {
    if (const auto reason = denied_by(options_, record.name, record.path)) {
      record.denied = true;
      throw LoadError(TENON_UNSUPPORTED, *reason, "change that key if this backend is expected");
    }
    const std::size_t self = result_.records.size();
    const auto owner = owners_.emplace(record.name, self).first->second;
    if (owner == self) return;
    const Record& first = result_.records[owner];
    record.shadowed = true;
    throw LoadError(TENON_INVALID_ARGUMENT,
                    fmt::format("another backend '{}' was found first: {} ({}){}", record.name,
                                first.path.empty() ? "part of this program" : platform::text_of(first.path), first.origin,
                                first.healthy ? "" : ", which is not usable"),
                    first.healthy ? "nothing, if the first is the intended one; else remove it, or name this file on the command line"
                                  : "repair or remove the first, or name this file on the command line");
  }

  const Options& options_;
  Result result_;
  std::set<std::filesystem::path> seen_;       ///< files that have a record
  std::map<std::string, std::size_t> owners_;  ///< backend name -> index of the record that has it
};

}  // namespace

Result load(const Options& options) {
  return Loading(options).run();
}

}  // namespace tenon::loader
