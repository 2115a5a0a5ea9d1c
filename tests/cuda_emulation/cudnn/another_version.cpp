// SPDX-License-Identifier: Apache-2.0
// A cuDNN that reports the major version before that of its file name.
#include <cudnn_graph.h>

#include <cstddef>

extern "C" __attribute__((visibility("default"))) std::size_t cudnnGetVersion() {
  return 8907;
}
