// SPDX-License-Identifier: Apache-2.0
// io/html_page.h - common style and escaping of HTML pages. Each page is a single file that needs no network.
#pragma once

#include <string>
#include <string_view>

namespace tenon::io {

/// Escapes text for an element or a quoted attribute.
std::string html_escaped(std::string_view text);

/// A page with its title as heading. `style` is appended to the common style sheet, whose colours are --page, --ink, --soft, --grid, --card
/// and the colour-blind safe (Okabe and Ito) --blue, --orange and --green.
std::string html_page(std::string_view title, std::string_view style, std::string_view body);

}  // namespace tenon::io
