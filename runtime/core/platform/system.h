// SPDX-License-Identifier: Apache-2.0
// platform/system.h - what the system tells about the machine, this process and its user. Texts are UTF-8.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

namespace tenon::platform {

/// The file of this program; empty if the system does not tell.
std::string executable_path();
std::uint64_t process_id();
/// "localhost" if the system does not tell.
std::string host_name();

/// No value if there is no such variable.
std::optional<std::string> environment_variable(const std::string& name);
/// Whether the process has more privileges than whoever started it, so that the environment cannot be trusted.
bool is_elevated();
/// The user's folder as the environment names it (HOME; on Windows USERPROFILE); empty if it names none.
std::string home_folder();
/// Where programs may keep files that can be made again ($XDG_CACHE_HOME, ~/.cache; on Windows %LOCALAPPDATA%); empty if the environment
/// names no absolute path.
std::string cache_folder();

/// The variable of home_folder(): "HOME".
extern const char* const home_variable;
/// Why cache_folder() is empty: "neither XDG_CACHE_HOME nor HOME is set".
extern const char* const missing_cache_folder;

/// The time in this place.
std::tm local_time(std::time_t time);

// Of the machine; 0 or "" where the system does not tell.
std::uint64_t physical_memory_bytes();
std::string processor_name();
/// "Debian GNU/Linux 12 (bookworm), Linux 6.1.0 x86_64".
std::string operating_system();

}  // namespace tenon::platform
