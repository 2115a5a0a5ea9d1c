// SPDX-License-Identifier: Apache-2.0
// core/printable.h - text that is safe on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

/// The text with control characters other than line feeds and tabs as "\x1b". Names that come from files appear in messages: raw, they
/// could change what a terminal shows.
std::string printable(std::string_view text);

}  // namespace tenon
