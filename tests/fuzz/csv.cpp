// SPDX-License-Identifier: Apache-2.0
// Tables of numbers; the first two bytes choose delimiter, header and target.
#include <tenon/data.h>

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  using namespace tenon::fuzz;
  if (size < 2) return 0;
  CsvOptions options;
  options.delimiter = ",;\t|"[data[0] % 4];
  options.header = CsvOptions::Header(data[0] / 4 % 3);
  options.target = CsvOptions::Target(data[1] % 3);
  const std::string path = file_of("a.csv", {data + 2, size - 2});
  accepts([&] { load_csv(path, options); });
  return 0;
}
