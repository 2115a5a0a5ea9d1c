// Selecting a device that does not exist is an error, which lists the available devices.
#include <iostream>

#include <tenon/context.h>

int main() {
  const tenon::Context context;
  try {
    const tenon::PlacementScope on_gpu(context, "gpu:7");
    std::cout << "there are eight GPUs here\n";
  } catch (const tenon::Error& error) {
    std::cout << tenon::name_of(error.status()) << ": " << error.what() << '\n';
  }
}
