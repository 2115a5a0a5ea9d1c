// SPDX-License-Identifier: Apache-2.0
// loader/negotiate.h - whether core and plugin can work together: versions, sanitizers, names, op definitions. The core decides.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "loader/loader.h"

namespace tenon::loader {

/// The minor that both sides use: the highest that both support. Throws a LoadError with both ranges, both build ids and what to install.
/// Reads the fields of `info` up to `platform` only, whose places are the same in every major version.
std::uint32_t negotiate_version(const tenon_host_info& host, const tenon_backend_info& info);

/// Throws a LoadError if a library built with one sanitizer cannot live in a process built with another or none.
void check_sanitizers(std::uint32_t host, std::uint32_t plugin);

/// Throws a LoadError for an invalid name, another platform, a missing `create`, an invalid option or op of the vendor; adds a warning for
/// what is unusual but harmless.
void check_answer(const tenon_host_info& host, const tenon_backend_info& info, std::vector<std::string>& out_warnings);

/// [a-z][a-z0-9_]*
bool is_valid_name(const char* name);

/// The op versions that both sides have but define differently, each with its reason. Op versions that only one side has do not matter.
std::vector<SwitchedOff> compare_digests(std::span<const tenon_op_digest> core, std::span<const tenon_op_digest> plugin);

}  // namespace tenon::loader
