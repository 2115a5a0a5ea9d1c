// SPDX-License-Identifier: Apache-2.0
// platform/streams.h - standard input, output and error of a program.
#pragma once

#include <cstdio>
#include <string_view>

namespace tenon::platform {

/// Opens those that are closed on the null device: the next file that is opened would take the place of one, and text meant for the
/// terminal would be written into it. On Windows also: bytes are written as they are, and a console shows UTF-8 and obeys escape sequences.
/// False if there is no null device. To be called before anything is written.
bool prepare_standard_streams();

/// Whether a stream is a terminal, or on Windows a console.
bool is_terminal(std::FILE* stream);

/// Whether a stream is a terminal that obeys escape sequences: not one with TERM=dumb, such as a shell of Emacs.
bool obeys_escape_sequences(std::FILE* stream);

/// The characters that fit into a line of a terminal; 0 if that is not known.
int terminal_columns(std::FILE* stream);

/// Writes to standard error with no buffer; may be called in a handler of a signal.
void write_to_standard_error(std::string_view text) noexcept;

}  // namespace tenon::platform
