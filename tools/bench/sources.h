// bench/sources.h - how fast data comes from files: part of tenon bandwidth.
#pragma once

#include "bench/benchmarks.h"

namespace tenon::bench {

/// One file read into memory, mapped, and read past the system's cache; samples of IDX files, arrays and folders of images.
void add_sources(Report& report, const Options& options, const Protocol& protocol);

}  // namespace tenon::bench
