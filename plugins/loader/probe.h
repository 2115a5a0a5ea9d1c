// SPDX-License-Identifier: Apache-2.0
// loader/probe.h - loads a plugin in a child process before this one opens it (ADR 32).
#pragma once

#include "loader/loader.h"

namespace tenon::loader {

/// Throws a LoadError, and keeps in the record what the plugin printed, if it crashes, hangs or ends the child. The record says if a child
/// was started. A probe that cannot be made is a LoadError under `always`, and a warning of the result under `once`.
void probe(const ProbeOptions& options, Record& record, Result& result);

}  // namespace tenon::loader
