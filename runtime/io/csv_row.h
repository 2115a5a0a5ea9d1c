// SPDX-License-Identifier: Apache-2.0
// io/csv_row.h - lines of CSV files.
#pragma once

#include <span>
#include <string>

namespace tenon::io {

/// The cells as a line without its end; in quotes where RFC 4180 asks for them.
std::string csv_row(std::span<const std::string> cells);

}  // namespace tenon::io
