// A cuDNN that says it is of the major version before its name's.
#include <cudnn_graph.h>

#include <cstddef>

extern "C" __attribute__((visibility("default"))) std::size_t cudnnGetVersion() {
  return 8907;
}
