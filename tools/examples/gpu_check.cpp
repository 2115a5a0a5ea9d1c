// Prints the first GPU; exit code 1 if there is none.
#include <iostream>

#include <tenon/context.h>

int main() {
  const std::string gpu = tenon::default_gpu();
  if (gpu.empty()) {
    std::cout << "GPU device not found\n";
    return 1;
  }
  std::cout << "Found GPU at: " << gpu << '\n';
}
