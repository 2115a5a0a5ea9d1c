// SPDX-License-Identifier: Apache-2.0
// exec/loading.h - from a configuration to the backends it asks for: what the loader is given, and what its result says about the user's
// wishes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenon/config.h>

#include "loader/loader.h"

namespace tenon::exec {

/// Places, lists and probe as configured. `plugin_origins`: as in Context. The caller sets `make_host` and `registered`.
loader::Options loader_options(const Config& config, const std::vector<std::filesystem::path>& plugins,
                               const std::vector<std::filesystem::path>& command_line_plugins,
                               const std::vector<std::string>& plugin_origins = {});

/// True if the file itself is at fault: it is neither excluded nor shadowed, and not one whose device or library this machine lacks.
bool is_broken(const loader::Record& record);

/// Writes what the loader did to the log: probes, and a warning for each broken candidate and each configured place without any.
void log_loading(const loader::Result& result);

/// Errors: a path that the API or the command line names and that does not exist, has no backend, or is an unusable file; options for a
/// backend whose name is misspelt. Options for a backend that is not there are a warning.
void check_requests(const Config& config, const loader::Result& result);

/// Usable backends in the order of `backends.use`, with a warning for each that is missing; or by priority, then name, the oracle last.
std::vector<std::shared_ptr<loader::Backend>> in_order(const loader::Result& result, const std::vector<std::string>& use);

/// "cuda: no device answers; seat the card": a part for each backend that could have been chosen and cannot be used. Empty without one.
std::string why_not_chosen(const loader::Result& result);

}  // namespace tenon::exec
