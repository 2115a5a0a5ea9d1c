// SPDX-License-Identifier: Apache-2.0
// system.h - what the mutants do to their process by functions of the system.
#pragma once

#include <tenon/backend.h>

namespace tenon::mutants {

/// The query of a library in the folder of this plugin; NULL if there is none.
tenon_backend_query_fn query_of_neighbour(const char* file);

void crash();
void set_variable(const char* name, const char* value);
void change_locale();
void change_umask();
/// Restricts the process to the last of the processors it may use.
void stay_on_one_processor();
void lower_file_limit();
void leave_file_open();

}  // namespace tenon::mutants
