// SPDX-License-Identifier: Apache-2.0
// cli/usage.h - what a command line that cannot be parsed should have been.
#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
}

namespace tenon::cli {

/// "`tenon` has no command 'trian'; did you mean 'train'?", or which commands there are if none is given, or about an unknown option; ""
/// for other mistakes. `arguments` are those after the program's name.
std::string explain_usage(const CLI::App& app, std::span<const char* const> arguments);
/// The same for the other mistakes, from the message of CLI11: "--runs: expected a number above 0, got '0'; `tenon bench --help` ...".
std::string explain_value(const CLI::App& app, const std::string& message);

}  // namespace tenon::cli
