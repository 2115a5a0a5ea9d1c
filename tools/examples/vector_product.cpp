// Computes [1, 2, 3] * [4, 5, 6] on every device.
#include <iostream>

#include <tenon/context.h>

int main() {
  const tenon::Context context;
  const auto a = tenon::Tensor::of<float>({1, 2, 3}, {3});
  const auto b = tenon::Tensor::of<float>({4, 5, 6}, {3});
  for (const tenon::DeviceInfo& device : context.devices()) {
    const tenon::PlacementScope scope(context, device.name);
    std::cout << device.name << ": " << context.apply(TENON_OP_Mul, {a, b})[0] << '\n';
  }
}
