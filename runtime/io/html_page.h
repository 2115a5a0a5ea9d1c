// io/html_page.h - what the HTML pages have in common: one look, and text that stays text. Each page is one file that needs no network.
#pragma once

#include <string>
#include <string_view>

namespace tenon::io {

/// Text for an element or a quoted attribute.
std::string html_escaped(std::string_view text);

/// A page with its title as heading. `style`: what this kind of page adds to the common style sheet, whose colours are --page, --ink,
/// --soft, --grid, --card and, told apart by people who are colour-blind (Okabe and Ito), --blue, --orange and --green.
std::string html_page(std::string_view title, std::string_view style, std::string_view body);

}  // namespace tenon::io
