// SPDX-License-Identifier: Apache-2.0
#include <tenon/device_name.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include <tenon/error.h>

#include "yaml/suggest.h"

namespace tenon {
namespace {

constexpr int max_index = 65535;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

[[noreturn]] void reject(std::string_view text, const std::string& reason) {
  throw Error("device '" + std::string(text) + "': " + reason +
              "; expected auto, cpu, gpu, cpu:N, gpu:N, <backend>:N, <backend>:uuid=..., <backend>:pci=... or a TensorFlow name such as "
              "/device:GPU:0");
}

bool is_backend_name(std::string_view name) {  // the rule of tenon_backend_info::name
  if (name.empty() || name[0] < 'a' || name[0] > 'z') return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

int parse_index(std::string_view text, const std::string& digits) {
  if (digits.empty()) reject(text, "the index after ':' is missing");
  int index = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool is_number = digits.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number) reject(text, "index '" + digits + "' is not a non-negative integer");
  if (problem != std::errc() || index > max_index) reject(text, "index " + digits + " is above " + std::to_string(max_index));
  if (digits.size() > 1 && digits[0] == '0') reject(text, "index '" + digits + "' has a leading zero");
  return index;
}

/// `type` is lower case; `index` is -1 if none was given.
void assign(std::string_view text, const std::string& type, int index, DeviceName& out_name) {
  if (type == "xla_cpu" || type == "xla_gpu") reject(text, "XLA_CPU and XLA_GPU are ways to execute, not devices (see the key 'fusion')");
  if (type == "device") reject(text, "'device' is the prefix of TensorFlow names and not a backend name");
  if (!is_backend_name(type)) {
    reject(text, type.empty() ? "the name is empty" : "'" + type + "' is not a backend name (a letter, then letters, digits and '_')");
  }
  out_name.kind = type == "cpu" ? DeviceName::Kind::alias_cpu : type == "gpu" ? DeviceName::Kind::alias_gpu : DeviceName::Kind::backend;
  if (out_name.kind == DeviceName::Kind::backend) out_name.backend = type;
  out_name.index = index;
}

/// "cuda:uuid=gpu-0123...": what follows the first ':' is a pair of the device's identity.
void parse_identity(std::string_view text, const std::string& lowered, DeviceName& out_name) {
  const std::size_t colon = lowered.find(':');
  if (colon == std::string::npos || colon > lowered.find('=')) reject(text, "an identity follows a backend's name and ':'");
  assign(text, lowered.substr(0, colon), -1, out_name);
  out_name.identity = lowered.substr(colon + 1);
  const std::size_t equals = out_name.identity.find('=');
  if (equals == 0) reject(text, "the key before '=' is missing");
  if (equals + 1 == out_name.identity.size()) reject(text, "the value after '=' is missing");
}

/// Whether an identity, pairs or one name separated by spaces, has this pair. Not case-sensitive.
bool has_pair(const std::string& identity, const std::string& pair) {
  const std::vector<std::string> pairs = split(lower(identity), ' ');
  return std::find(pairs.begin(), pairs.end(), pair) != pairs.end();
}

/// job, replica and task are accepted for compatibility with TensorFlow: there is only one process.
void check_process_part(std::string_view text, const std::string& part, const std::string& value) {
  const std::string expected = part == "job" ? "localhost" : "0";
  if (value != expected) reject(text, part + " '" + value + "' is not this process; expected " + part + " '" + expected + "'");
}

void parse_tensorflow(std::string_view text, const std::string& lowered, DeviceName& out_name) {
  std::vector<std::string> seen;
  bool has_device = false;
  for (const std::string& part : split(std::string_view(lowered).substr(lowered[0] == '/' ? 1 : 0), '/')) {
    std::vector<std::string> words = split(part, ':');
    const bool is_process_part = words[0] == "job" || words[0] == "replica" || words[0] == "task";
    const std::string role = is_process_part ? words[0] : "device";
    for (const std::string& earlier : seen) {
      if (earlier == role) reject(text, "'" + role + "' is given twice");
    }
    seen.push_back(role);
    if (is_process_part) {
      if (words.size() != 2) reject(text, "'" + part + "' is not of the form " + role + ":VALUE");
      check_process_part(text, role, words[1]);
      continue;
    }
    has_device = true;
    if (words[0] == "device") words.erase(words.begin());
    if (words.empty() || words[0].empty()) reject(text, "'" + part + "' has no device type");
    if (words.size() > 2) reject(text, "'" + part + "' has too many parts");
    if (words[0] == "auto") reject(text, "'auto' cannot be combined with other parts");
    // TensorFlow's "any index" is the same as no index.
    const bool any = words.size() == 1 || words[1] == "*";
    assign(text, words[0], any ? -1 : parse_index(text, words[1]), out_name);
  }
  if (!has_device) reject(text, "it names a process but not a device");
}

}  // namespace

std::string DeviceName::str() const {
  if (kind == Kind::automatic) return "auto";
  const std::string stem = kind == Kind::alias_cpu ? "cpu" : kind == Kind::alias_gpu ? "gpu" : backend;
  return stem + ":" + (identity.empty() ? std::to_string(index_or_zero()) : identity);
}

DeviceName parse_device_name(std::string_view text) {
  DeviceName name;
  name.typed = std::string(text);
  const std::string lowered = lower(text);
  if (lowered.empty()) reject(text, "the name is empty");
  if (lowered.find_first_of(" \t\r\n") != std::string::npos) reject(text, "it contains a space");
  if (lowered == "auto") return name;
  if (lowered.find('=') != std::string::npos) {
    parse_identity(text, lowered, name);
    return name;
  }
  if (lowered.find('/') != std::string::npos || lowered.rfind("device:", 0) == 0) {
    parse_tensorflow(text, lowered, name);
    return name;
  }
  const std::vector<std::string> words = split(lowered, ':');
  if (words.size() > 2) reject(text, "it has more than one ':'");
  if (words[0] == "auto") reject(text, "'auto' takes no index");
  assign(text, words[0], words.size() == 2 ? parse_index(text, words[1]) : -1, name);
  return name;
}

std::string alias_of(std::span<const AvailableDevice> devices, std::size_t position) {
  const DeviceKind kind = devices[position].kind;
  if (kind == DeviceKind::accelerator) return {};
  std::size_t before = 0;
  for (std::size_t i = 0; i < position; ++i) before += devices[i].kind == kind ? 1 : 0;
  return (kind == DeviceKind::cpu ? "cpu:" : "gpu:") + std::to_string(before);
}

std::string describe(std::span<const AvailableDevice> devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string alias = alias_of(devices, i);
    text += (i == 0 ? "" : ", ") + devices[i].name() + (alias.empty() ? "" : " (" + alias + ")");
  }
  return text.empty() ? "none" : text;
}

namespace {

/// Whether the device is of the backend or of the kind that the name starts with.
bool is_of(const AvailableDevice& device, const DeviceName& name) {
  if (name.kind == DeviceName::Kind::backend) return device.backend == name.backend;
  return device.kind == (name.kind == DeviceName::Kind::alias_cpu ? DeviceKind::cpu : DeviceKind::gpu);
}

std::size_t find_identity(const DeviceName& name, std::span<const AvailableDevice> devices) {
  std::string known;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!is_of(devices[i], name)) continue;
    if (has_pair(devices[i].identity, name.identity)) return i;
    known += (known.empty() ? "" : ", ") + devices[i].name() + " is " + devices[i].identity;
  }
  throw Error(Status::device_not_found,
              "device '" + name.typed + "' not found; " + (known.empty() ? "available: " + describe(devices) : "identities: " + known));
}

}  // namespace

std::size_t find_device(const DeviceName& name, std::span<const AvailableDevice> devices) {
  if (!name.identity.empty()) return find_identity(name, devices);
  const std::string requested = name.str();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const bool found = name.kind == DeviceName::Kind::automatic || requested == devices[i].name() ||
                       (name.kind != DeviceName::Kind::backend && requested == alias_of(devices, i));
    if (found) return i;
  }
  std::vector<std::string> backends;
  for (const AvailableDevice& device : devices) backends.push_back(device.backend);
  bool known = name.kind != DeviceName::Kind::backend;
  for (const std::string& backend : backends) known = known || backend == name.backend;
  throw Error(Status::device_not_found, "device '" + (name.typed.empty() ? requested : name.typed) + "' not found; available: " +
                                            describe(devices) + (known ? "" : yaml::did_you_mean(name.backend, backends)));
}

std::size_t find_device(std::string_view name, std::span<const AvailableDevice> devices) {
  return find_device(parse_device_name(name), devices);
}

std::string shown_name(const DeviceName& name, const AvailableDevice& device) {
  const std::string canonical = device.name();
  if (name.kind == DeviceName::Kind::automatic || name.typed.empty() || name.str() == canonical) return canonical;
  return canonical + " (" + name.typed + ")";
}

}  // namespace tenon
