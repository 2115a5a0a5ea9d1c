// SPDX-License-Identifier: Apache-2.0
#include "exec/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "platform/path.h"

namespace tenon::exec {
namespace {

namespace fs = std::filesystem;

/// A cgroup hierarchy that can limit CPU time, as /proc/self/mountinfo has it.
struct Mount {
  bool version_2;
  std::string root;         ///< the cgroup that is seen at the mount point
  std::string mount_point;  ///< absolute
};

bool lists(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    if (names.substr(0, comma) == name) return true;
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return false;
}

/// The kernel writes spaces, tabs, line ends and backslashes of paths as three octal digits after a backslash.
std::string unescape(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t k) { return i + k < text.size() && text[i + k] >= '0' && text[i + k] <= '7'; };
    if (text[i] == '\\' && octal(1) && octal(2) && octal(3)) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::vector<Mount> cgroup_mounts(const fs::path& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string skipped, cgroup, mount_point, type, source, options;
    fields >> skipped >> skipped >> skipped >> cgroup >> mount_point;
    while (fields >> skipped && skipped != "-") {
    }
    if (!(fields >> type >> source >> options)) continue;
    const bool version_2 = type == "cgroup2";
    if (version_2 || (type == "cgroup" && lists(options, "cpu"))) mounts.push_back({version_2, unescape(cgroup), unescape(mount_point)});
  }
  return mounts;
}

/// The cgroup of this process in the hierarchy of version 2, or in that of the cpu controller of version 1; empty if there is none.
std::string own_cgroup(const fs::path& root, bool version_2) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // hierarchy:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version_2 ? line.starts_with("0::") : lists(controllers, "cpu")) return line.substr(second + 1);
  }
  return "";
}

/// The quota that the files of one cgroup state; infinite if they state none.
double quota_in(const fs::path& folder, bool version_2) {
  const double none = std::numeric_limits<double>::infinity();
  double quota_us = 0, period_us = 0;
  if (version_2) {
    std::ifstream file(folder / "cpu.max");  // "max 100000" if there is no limit, which is no number
    if (!(file >> quota_us >> period_us)) return none;
  } else {
    std::ifstream quota(folder / "cpu.cfs_quota_us"), period(folder / "cpu.cfs_period_us");  // -1 if there is no limit
    if (!(quota >> quota_us) || !(period >> period_us)) return none;
  }
  return quota_us > 0 && period_us > 0 ? quota_us / period_us : none;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& root) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const Mount& mount : cgroup_mounts(root)) {
    const std::string own = own_cgroup(root, mount.version_2);
    if (own.empty()) continue;
    // A container often sees its own cgroup at the mount point, under a path that counts from the host's root.
    fs::path below = platform::path_of(own).lexically_relative(mount.root);
    if (below.empty() || *below.begin() == "..") below = ".";
    const fs::path top = root / platform::path_of(mount.mount_point).relative_path();
    smallest = std::min(smallest, quota_in(top, mount.version_2));
    fs::path folder = top;
    for (const fs::path& name : below) {
      if (name == "..") break;
      folder /= name;
      smallest = std::min(smallest, quota_in(folder, mount.version_2));
    }
  }
  return std::isfinite(smallest) ? std::optional<double>(smallest) : std::nullopt;
}

std::uint32_t threads_of_quota(double quota) {
  return static_cast<std::uint32_t>(std::clamp(std::ceil(quota), 1.0, 65536.0));
}

}  // namespace tenon::exec
