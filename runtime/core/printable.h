// SPDX-License-Identifier: Apache-2.0
// core/printable.h - text that is safe on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

/// The text with control characters other than line feeds and tabs as "\u001b". Names that come from files appear in what is printed: raw,
/// they could change what a terminal shows. In JSON the result means the same as the text.
std::string printable(std::string_view text);

}  // namespace tenon
