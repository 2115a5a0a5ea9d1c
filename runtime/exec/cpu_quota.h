// SPDX-License-Identifier: Apache-2.0
// exec/cpu_quota.h - the share of the machine's CPU time that control groups (cgroups) leave to this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tenon::exec {

/// The CPU quota of this process in CPUs (1.5 is 150 ms of CPU time per 100 ms): the smallest of its cgroup and of all above it, of
/// versions 1 and 2. No value if nothing limits it, on other systems than Linux, and if the files are absent or malformed. `root` is the
/// folder that holds proc/self/cgroup, proc/self/mountinfo and the mount points that they name. Threads  any.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// The number of threads that a quota of so many CPUs keeps busy: rounded up, so that no part of the quota is left unused, and >= 1.
std::uint32_t threads_of_quota(double quota);

}  // namespace tenon::exec
