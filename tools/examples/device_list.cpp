// Lists every device with its properties, as `tenon devices` does.
#include <iostream>

#include <tenon/context.h>

int main() {
  for (const tenon::DeviceInfo& device : tenon::list_devices()) {
    std::cout << device.name;
    if (!device.alias.empty()) std::cout << " (" << device.alias << ")";
    std::cout << ": " << device.product << ", " << device.description << ", " << device.memory_size_bytes / (1 << 20) << " MiB, "
              << device.ops.size() << " ops\n";
  }
}
