// SPDX-License-Identifier: Apache-2.0
// bench/sources.h - bandwidth of reading data from files, part of tenon bandwidth.
#pragma once

#include "bench/benchmarks.h"

namespace tenon::bench {

/// Measures a file read into memory, mapped, and read without the page cache; and data sets of IDX files, arrays and image folders.
void add_sources(Report& report, const Options& options, const Protocol& protocol);

}  // namespace tenon::bench
