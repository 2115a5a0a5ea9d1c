// SPDX-License-Identifier: Apache-2.0
// cli/standard_streams.h - standard input, output and error of the program.
#pragma once

#include <string>

namespace tenon::cli {

/// Writes to standard output, at once, with control characters escaped (core/printable.h).
void print(const std::string& text);
/// The same without escapes, for what moves the cursor on purpose. A failure is kept for close_standard_output: it does not stop a training
/// run.
void write_output(const std::string& bytes);

/// Writes to standard error, with control characters escaped.
void print_message(const std::string& text);
/// Writes the line "tenon: error: text" to standard error, likewise.
void print_error(const std::string& text);

/// Makes them usable (platform/streams.h), or ends the process.
void open_standard_streams();

/// Closes standard output. Returns `exit_code`, or 1 with a message if any of it could not be written and the code was 0.
int close_standard_output(int exit_code);

/// False, with a message on standard error, if the stack is too small for the kernels, whose threads get stacks of the same size: they
/// would crash without a message. To be called before anything that needs stack itself.
bool stack_suffices();

}  // namespace tenon::cli
