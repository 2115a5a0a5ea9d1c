// SPDX-License-Identifier: Apache-2.0
// source.h - the OpenCL C sources of this backend as strings. CMake embeds every .cl file: `sources::reduce` is ops/reduce.cl.
#pragma once

namespace tenon::opencl {

struct Source {
  const char* file;
  const char* text;
};

}  // namespace tenon::opencl
