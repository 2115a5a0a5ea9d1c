// SPDX-License-Identifier: Apache-2.0
// CIFAR-10's binary files: locations, contents and errors.
#include <doctest/doctest.h>

#include <filesystem>

#include "data_testing.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// A record whose planes begin with `label`, `label` + 1 and `label` + 2.
std::string record(int label) {
  std::string text(3073, '\0');
  text[0] = static_cast<char>(label);
  for (int plane = 0; plane < 3; ++plane) text[static_cast<std::size_t>(1 + 1024 * plane)] = static_cast<char>(label + plane);
  return text;
}

void write_all(const TemporaryFolder& folder, const std::string& inner = "") {
  for (int i = 1; i <= 5; ++i) folder.write(inner + "data_batch_" + std::to_string(i) + ".bin", record(i) + record(i - 1));
  folder.write(inner + "test_batch.bin", record(9));
}

}  // namespace

TEST_CASE_FIXTURE(InFolder, "cifar10: five batches are concatenated as planes of red, green and blue") {
  write_all(folder);
  const auto train = load_cifar10(folder.path(), Split::train);
  CHECK(train->size() == 10);
  CHECK(train->x().str() == "u8(10,3,32,32)");
  CHECK(train->x_type().dtype == DType::f32);
  CHECK(train->num_classes() == 10);
  CHECK(train->y().to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0, 2, 1, 3, 2, 4, 3, 5, 4});
  CHECK(train->x().data<std::uint8_t>()[8 * 3072] == 5);
  CHECK(train->x().data<std::uint8_t>()[8 * 3072 + 2 * 1024] == 7);
  CHECK(gather(*train, {8}).x.data<float>()[1024] == doctest::Approx(6.0 / 255));
  CHECK(load_cifar10(folder.path(), Split::test)->y().to_vector<std::int64_t>() == std::vector<std::int64_t>{9});
}

TEST_CASE_FIXTURE(InFolder, "cifar10: the folder that the archive unpacks to is found") {
  std::filesystem::create_directory(folder.file("cifar-10-batches-bin"));
  write_all(folder, "cifar-10-batches-bin/");
  CHECK(load_cifar10(folder.path(), Split::train)->size() == 10);
}

TEST_CASE_FIXTURE(InFolder, "cifar10: each channel may have its own scaling") {
  write_all(folder);
  Cifar10Options options;
  options.channels = {{1, 0}, {1, 100}, {2, 0}};
  const Tensor x = gather(*load_cifar10(folder.path(), Split::train, options), {8}).x;
  CHECK(x.data<float>()[0] == 5.0f);
  CHECK(x.data<float>()[1024] == 106.0f);
  CHECK(x.data<float>()[1025] == 100.0f);
  CHECK(x.data<float>()[2048] == 14.0f);
  options.channels.pop_back();
  CHECK_ERROR("cifar10 train: expected a scaling for each index of a sample's first axis, got 2 for x u8(10,3,32,32)",
              load_cifar10(folder.path(), Split::train, options));
}

TEST_CASE_FIXTURE(InFolder, "cifar10: an error has file and record") {
  CHECK_ERROR(folder.file("none") + ": folder not found; expected one with data_batch_1.bin[.gz]",
              load_cifar10(folder.file("none"), Split::train));
  write_all(folder);
  folder.write("data_batch_3.bin", record(1) + record(2).substr(1));
  CHECK_ERROR(
      folder.file("data_batch_3.bin") +
          ": expected records of 3073 bytes, 10000 of them in the original, got 6145 bytes: 1 record and 3072 extra bytes; download the "
          "file again",
      load_cifar10(folder.path(), Split::train));
  folder.write("data_batch_3.bin", record(1) + record(17));
  CHECK_ERROR(folder.file("data_batch_3.bin") + ": record 1: label 17 is out of range, expected 0 to 9; CIFAR-100 has a different layout",
              load_cifar10(folder.path(), Split::train));
  folder.write("data_batch_3.bin", "");
  CHECK_ERROR_CONTAINS("got 0 bytes", load_cifar10(folder.path(), Split::train));
  std::filesystem::remove(folder.file("data_batch_3.bin"));
  CHECK_ERROR(folder.path() + ": expected data_batch_3.bin or data_batch_3.bin.gz, got neither", load_cifar10(folder.path(), Split::train));
}
