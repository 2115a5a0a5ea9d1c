// SPDX-License-Identifier: Apache-2.0
#include "conv/image_epilogue.h"

#include "kernel/launch.h"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {
namespace {

template <class T>
struct Operands {
  T* y;
  const T* biases[2];
  const T* residual;
  std::int64_t packs, channels, inner;
  sdk::Activation activation;
};

/// A pack is within one channel, or, with channels last, has one channel per element.
template <class T, int V, class Index>
__global__ void epilogue_kernel(Operands<T> p) {
  using W = Wide<T>;
  for (std::int64_t i = thread_index(); i < p.packs; i += thread_count()) {
    const auto first = static_cast<Index>(i * V);
    const auto channel = static_cast<std::int64_t>(first / static_cast<Index>(p.inner) % static_cast<Index>(p.channels));
    const std::int64_t step = p.inner == 1 ? 1 : 0;
    auto* const at = reinterpret_cast<Pack<T, V>*>(p.y) + i;
    Pack<T, V> y = *at, residual{};
    if (p.residual != nullptr) residual = reinterpret_cast<const Pack<T, V>*>(p.residual)[i];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      W sum = widen(y.at[v]);
      for (const T* bias : p.biases) {
        if (bias != nullptr) sum += widen(bias[channel + v * step]);
      }
      if (p.residual != nullptr) sum += widen(residual.at[v]);
      y.at[v] = narrow<T>(activated(p.activation, sum));
    }
    *at = y;
  }
}

template <class T, int V>
void apply_packs(Stream& stream, const ImageEpilogue& work) {
  const Operands<T> operands{static_cast<T*>(work.y),
                             {static_cast<const T*>(work.biases[0]), static_cast<const T*>(work.biases[1])},
                             static_cast<const T*>(work.residual),
                             work.count / V,
                             work.channels,
                             work.inner,
                             work.activation};
  const Geometry geometry = grid_stride(stream.device(), operands.packs);
  if (work.count <= std::numeric_limits<std::int32_t>::max()) {
    launch(stream, geometry, epilogue_kernel<T, V, std::uint32_t>, operands);
  } else {
    launch(stream, geometry, epilogue_kernel<T, V, std::uint64_t>, operands);
  }
}

template <class T>
void apply_as(Stream& stream, const ImageEpilogue& work) {
  constexpr int widest = 16 / static_cast<int>(sizeof(T));
  const auto is_aligned = [](const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; };
  const std::int64_t run = work.inner == 1 ? work.channels : work.inner;
  if (run % widest == 0 && is_aligned(work.y) && is_aligned(work.residual)) {
    apply_packs<T, widest>(stream, work);
  } else {
    apply_packs<T, 1>(stream, work);
  }
}

}  // namespace

void apply_epilogue(Stream& stream, const ImageEpilogue& work) {
  switch (work.dtype) {
    case TENON_DTYPE_F16:
      return apply_as<sdk::Half>(stream, work);
    case TENON_DTYPE_BF16:
      return apply_as<sdk::BFloat16>(stream, work);
    case TENON_DTYPE_F32:
      return apply_as<float>(stream, work);
    default:
      return apply_as<double>(stream, work);
  }
}

}  // namespace tenon::cuda
