// SPDX-License-Identifier: Apache-2.0
// Resizing of images, as ONNX's Resize of opset 13.
#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"
#include "kernel/windows.h"

namespace tenon::opencl {
namespace {

/// `Resize` of ops/resize.cl.
struct Sizes {
  std::int64_t image[2] = {1, 1}, result[2] = {1, 1};
  std::int32_t mode, coordinates, rounding, reserved = 0;
};
static_assert(TENON_RESIZE_NEAREST == 0 && TENON_COORDINATES_ASYMMETRIC == 1 && TENON_COORDINATES_ALIGN_CORNERS == 2 &&
              TENON_COORDINATES_PYTORCH_HALF_PIXEL == 3 && TENON_ROUND_PREFER_CEIL == 1 && TENON_ROUND_FLOOR == 2 && TENON_ROUND_CEIL == 3);

template <class T>
void run(const sdk::Call& call, const char* function, const sdk::Operand& image, const sdk::Operand& result) {
  const auto& a = call.attr<tenon_attributes_resize>();
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  Sizes sizes{.mode = static_cast<std::int32_t>(a.mode),
              .coordinates = static_cast<std::int32_t>(a.coordinates),
              .rounding = static_cast<std::int32_t>(a.rounding)};
  set_spatial(sizes.image, image);
  set_spatial(sizes.result, result);
  const double scales[2] = {image.rank == 4 ? a.scales[2] : 1.0, a.scales[image.rank - 1]};
  Launch launch(call, sources::resize, function, types<T>());
  launch.value(sizes).value(count).out(call, 0).in(call, 0);
  for (const double scale : scales) {
    if (computes_f64(call)) {
      launch.value(scale);
    } else {
      launch.value(static_cast<float>(scale));
    }
  }
  launch.over(count);
}

template <class T>
void resize(const sdk::Call& call) {
  run<T>(call, "resize", call.inputs[0], call.outputs[0]);
}

template <class T>
void resize_grad(const sdk::Call& call) {
  run<T>(call, "resize_grad", call.outputs[0], call.inputs[0]);
}

constexpr sdk::Traits traits{.refuse = refuse_volumes};

}  // namespace
TENON_KERNEL_WITH(resize, traits, float, double)
TENON_KERNEL_WITH(resize_grad, traits, float, double)
}  // namespace tenon::opencl
