// SPDX-License-Identifier: Apache-2.0
// system.h - what a mutant does to the operating system, and how it opens a library: posix/ or windows/.
#pragma once

#include <tenon/backend.h>

namespace tenon::mutants {

/// The query of the unmodified reference backend, from a copy of its file next to the mutant's: a different library from the oracle in the
/// same process. Null if there is none.
tenon_backend_query_fn unmodified_query();

void set_variable(const char* name, const char* value);
void clear_umask();
void leave_file_open();
/// By one, of the files that may be open.
void lower_file_limit();
/// Restricts the process to the last of the processors it may use.
void stay_on_one_processor();

}  // namespace tenon::mutants
