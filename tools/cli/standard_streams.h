// SPDX-License-Identifier: Apache-2.0
// cli/standard_streams.h - standard input, output and error of the program.
#pragma once

#include <string>

namespace tenon::cli {

/// Writes to standard output, at once. A failure is kept for close_standard_output: it does not stop a training run.
void print(const std::string& text);

/// Writes "tenon: error: text" to standard error, with control characters escaped.
void print_error(const std::string& text);

/// Opens those of descriptors 0 to 2 that are closed on /dev/null. The next file that is opened would get such a number, and text meant for
/// the terminal would be written into it.
void open_standard_streams();

/// Closes standard output. Returns `exit_code`, or 1 with a message if any of it could not be written and the code was 0.
int close_standard_output(int exit_code);

/// Fails if the stack is too small for the kernels, whose threads get stacks of the same size: they would crash without a message.
void check_stack_limit();

}  // namespace tenon::cli
