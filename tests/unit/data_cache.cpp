// SPDX-License-Identifier: Apache-2.0
// Caches: samples are read once; files are reused, rewritten and removed.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>

#include "core/log.h"
#include "data/disk_cache.h"
#include "data_testing.h"
#include "temporary_folder.h"

using namespace tenon;
using tenon::data::ContentKey;
using tenon::data::DiskCache;
using namespace tenon::test;

namespace {

/// Sample i is x = (i, -i), y = i; counts the reads of samples.
class Counting final : public Dataset {
 public:
  explicit Counting(std::int64_t size) : Dataset({DType::f32, {2}}, {DType::i64, {}}), size_(size) {}
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  std::optional<std::int64_t> num_classes() const override { return size_; }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    check_batch(indices, inputs, targets);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == fails_at) throw Error("counting: sample is unreadable");
      inputs[0].data<float>()[2 * i] = static_cast<float>(indices[i]);
      inputs[0].data<float>()[2 * i + 1] = static_cast<float>(-indices[i]);
      targets[0].data<std::int64_t>()[i] = indices[i];
      ++asked;
    }
  }

  mutable std::atomic<std::int64_t> asked{0};
  std::int64_t fails_at = -1;

 private:
  const std::string name_ = "counting";
  const std::int64_t size_;
};

std::string key_of(const std::string& text) {
  ContentKey key;
  key.add(text);
  return key.str();
}

std::string stored(const DiskCache& cache, const Dataset& data, const std::string& content, const std::string& options) {
  ContentKey content_key, options_key;
  content_key.add(content);
  options_key.add(options);
  const std::string path = cache.path_of("mnist-train", "/data/mnist", content_key, options_key);
  cache.store(path, data, {{"black", "0x1p-1"}});
  return path;
}

}  // namespace

TEST_CASE("cache: in memory every sample is read once, in any batches") {
  const auto data = std::make_shared<Counting>(10);
  const auto cached = cache_in_memory(data);
  CHECK(data->asked == 0);
  CHECK(cached->size() == 10);
  CHECK(cached->num_classes() == 10);
  gather(*cached, {3, 1, 4});
  CHECK(data->asked == 3);
  const auto [x, y] = gather(*cached, {1, 5, 9, 4, 2, 3});
  CHECK(data->asked == 6);
  CHECK(values_of<std::int64_t>(y) == std::vector<std::int64_t>{1, 5, 9, 4, 2, 3});
  CHECK(values_of<float>(x) == std::vector<float>{1, -1, 5, -5, 9, -9, 4, -4, 2, -2, 3, -3});
  CHECK_ERROR("counting: gather: indices[0] is 10, expected 0 to 9", gather(*cached, {10}));
  CHECK_ERROR("cache_in_memory: expected a data set, got none", cache_in_memory(nullptr));
}

TEST_CASE("cache: a sample that failed is read again") {
  const auto data = std::make_shared<Counting>(4);
  const auto cached = cache_in_memory(data);
  data->fails_at = 2;
  CHECK_ERROR("counting: sample is unreadable", gather(*cached, {0, 2}));
  data->fails_at = -1;
  CHECK(values_of<std::int64_t>(gather(*cached, {0, 2}).y) == std::vector<std::int64_t>{0, 2});
}

TEST_CASE("cache: epochs after the first read nothing, for any number of workers") {
  for (const int workers : {0, 1, 4}) {
    const auto data = std::make_shared<Counting>(100);
    Batches batches(cache_in_memory(data), {.batch_size = 7, .workers = workers, .prefetch = 4});
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      batches.start(epoch);
      while (const Batch* batch = batches.next()) {
        for (std::int64_t i = 0; i < batch->y().count(); ++i)
          REQUIRE(batch->y().data<std::int64_t>()[i] == batch->indices[static_cast<std::size_t>(i)]);
      }
    }
    CHECK(data->asked == 100);
  }
}

TEST_CASE("cache: keys distinguish contents") {
  CHECK(key_of("abc").size() == 32);
  CHECK(key_of("abc") == key_of("abc"));
  CHECK(key_of("abc") != key_of("abd"));
  CHECK(key_of("") != key_of(std::string(1, '\0')));
  CHECK(key_of(std::string(8, '\0')) != key_of(std::string(16, '\0')));
  ContentKey joined, apart;
  joined.add("ab"), joined.add("c");
  apart.add("a"), apart.add("bc");
  CHECK(joined.str() != apart.str());
  const TemporaryFolder folder;
  ContentKey one, other, renamed;
  one.add_file(folder.write("a", std::string(3000000, 'x')));
  renamed.add_file(folder.write("b", std::string(3000000, 'x')));
  other.add_file(folder.write("a", std::string(2999999, 'x') + "y"));
  CHECK(one.str() != other.str());
  CHECK(one.str() != renamed.str());
}

TEST_CASE_FIXTURE(InFolder, "cache: samples on disk are mapped, with their stored metadata") {
  const DiskCache cache(folder.file("new/deep"));
  const Counting data(600);
  const std::string path = stored(cache, data, "content", "options");
  const data::CachedPart part = cache.open(path);
  REQUIRE(part.data != nullptr);
  CHECK(part.metadata.at("black") == "0x1p-1");
  CHECK(part.data->name() == "counting");
  CHECK(part.data->num_classes() == 600);
  CHECK(part.data->is_unscaled());
  const auto [x, y] = gather(*part.data, {599, 256, 0});
  CHECK(values_of<std::int64_t>(y) == std::vector<std::int64_t>{599, 256, 0});
  CHECK(values_of<float>(x) == std::vector<float>{599, -599, 256, -256, 0, 0});
}

TEST_CASE_FIXTURE(InFolder, "cache: new content removes old files of the same source, other options do not") {
  const DiskCache cache(folder.path());
  const Counting data(5);
  const std::string first = stored(cache, data, "old", "a"), second = stored(cache, data, "old", "b");
  CHECK(first != second);
  folder.write("mnist-test-00000000-1-2.safetensors", "of another part");
  folder.write("note.txt", "not ours");
  CHECK(folder.count_files() == 4);
  const std::string third = stored(cache, data, "new", "a");
  CHECK(folder.count_files() == 3);
  CHECK(cache.open(first).data == nullptr);
  CHECK(cache.open(second).data == nullptr);
  CHECK(cache.open(third).data != nullptr);
}

TEST_CASE("cache: a damaged file is ignored") {
  const std::uint32_t level = log::level();
  log::set_level(TENON_LOG_ERROR);  // each damaged file is logged
  const TemporaryFolder folder;
  const DiskCache cache(folder.path());
  const std::string path = stored(cache, Counting(5), "content", "options");
  const std::string name = std::filesystem::path(path).filename().string(), good = folder.read(name);
  const auto opens = [&](const std::string& content) {
    folder.write(name, content);
    return cache.open(path).data != nullptr;
  };
  CHECK(opens(good));
  for (std::size_t size = 0; size < good.size(); ++size) CHECK_FALSE(opens(good.substr(0, size)));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string damaged = good;
    damaged[at] ^= 1;
    CHECK_FALSE(opens(damaged));
  }
  log::set_level(level);
}

TEST_CASE_FIXTURE(InFolder, "cache: a folder that cannot be created is reported with the remedy") {
  folder.write("file", "");
  const std::string text = message_of([&] { const DiskCache cache(folder.file("file/inner")); });
  CHECK(text.rfind(folder.file("file/inner") + ": the cache folder cannot be created: ", 0) == 0);
  CHECK(contains(text, "set data.cache_directory to another"));
}
