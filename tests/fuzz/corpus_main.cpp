// SPDX-License-Identifier: Apache-2.0
// Runs a target once on every file of the given folders, as libFuzzer does with a corpus, in builds without libFuzzer.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "bound_memory.h"
#include "fuzz.h"
#include "platform/path.h"

int main(int argc, char** argv) {
  tenon::fuzz::bound_memory();
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::printf("%s\n", tenon::platform::text_of(file.filename()).c_str());
    std::fflush(stdout);  // the last name is that of the file that ended the run
    std::ifstream stream(file, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu files\n", files.size());
  return files.empty() ? 1 : 0;
}
