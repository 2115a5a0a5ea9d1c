// SPDX-License-Identifier: Apache-2.0
// Samples of a cache whose file is removed: Windows keeps a mapped file from being removed.
#include <doctest/doctest.h>

#include <filesystem>

#include "data/disk_cache.h"
#include "data_testing.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE_FIXTURE(InFolder, "cache: the samples outlive the name of their file") {
  const data::DiskCache cache(folder.path());
  const ArrayDataset data(Tensor::of<float>({1, 2, 3}, {3, 1}), Tensor::of<std::int64_t>({4, 5, 6}, {3}));
  const std::string path = folder.file("samples.safetensors");
  cache.store(path, data, {});
  const data::CachedPart part = cache.open(path);
  REQUIRE(part.data != nullptr);
  std::filesystem::remove(path);
  CHECK(values_of<std::int64_t>(gather(*part.data, {2}).y) == std::vector<std::int64_t>{6});
  CHECK(cache.open(path).data == nullptr);
}
