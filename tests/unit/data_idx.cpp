// SPDX-License-Identifier: Apache-2.0
// IDX files: every dtype, every error, and the real MNIST sets if available.
#include <doctest/doctest.h>

#include <filesystem>

#include <tenon/data.h>

#include "gzip_writer.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string idx(std::uint32_t magic, const std::vector<std::uint32_t>& sizes, const std::string& content) {
  std::string bytes = big_endian(magic);
  for (const std::uint32_t size : sizes) bytes += big_endian(size);
  return bytes + content;
}

/// The error of load_idx for a file of these bytes, without the leading path.
std::string refusal_of(const std::string& bytes) {
  return message_of_file("bad.idx", bytes, load_idx);
}

/// A set of `count` images of 2 x 2 pixels; bytes of the files can be replaced by `images` and `labels`.
void write_set(const TemporaryFolder& folder, const std::string& images, const std::string& labels, const std::string& ending = "") {
  folder.write("train-images-idx3-ubyte" + ending, images);
  folder.write("train-labels-idx1-ubyte" + ending, labels);
}
const std::string two_images = idx(2051, {2, 2, 2}, std::string("\x00\xff\x33\x66\x01\x02\x03\x04", 8));
const std::string two_labels = idx(2049, {2}, std::string("\x07\x09", 2));

std::string mnist_refusal(const TemporaryFolder& folder, const MnistOptions& options = {}) {
  return message_of([&] { (void)load_mnist(folder.path(), Split::train, options); });
}

}  // namespace

TEST_CASE_FIXTURE(InFolder, "idx: every dtype of the format is read in native order") {
  const auto read = [&](std::uint32_t magic, std::uint32_t count, const std::string& content) {
    return load_idx(folder.write("x", idx(magic, {count}, content)));
  };
  CHECK(read(0x0801, 2, "\x01\xff").data<std::uint8_t>()[1] == 255);
  CHECK(read(0x0901, 2, "\x01\xff").data<std::int8_t>()[1] == -1);
  CHECK(read(0x0B01, 1, "\xff\x02").data<std::int16_t>()[0] == -254);
  CHECK(read(0x0C01, 1, "\x01\x02\x03\x04").data<std::int32_t>()[0] == 0x01020304);
  CHECK(read(0x0D01, 1, std::string("\xbf\xc0\x00\x00", 4)).data<float>()[0] == -1.5f);
  CHECK(read(0x0E01, 1, std::string("\x40\x09\x00\x00\x00\x00\x00\x00", 8)).data<double>()[0] == 3.125);
}

TEST_CASE_FIXTURE(InFolder, "idx: plain and gzip files have the same tensor") {
  for (const std::string& bytes : {two_images, gzip(two_images)}) {
    const Tensor t = load_idx(folder.write("images", bytes));
    CHECK(t.str() == "u8(2,2,2)");
    CHECK(t.data<std::uint8_t>()[1] == 255);
    CHECK(t.data<std::uint8_t>()[7] == 4);
  }
}

TEST_CASE("idx: a missing file is reported") {
  CHECK_ERROR("/no/such/images.gz: file not found", load_idx("/no/such/images.gz"));
}

TEST_CASE("idx: a wrong magic is reported") {
  const std::string expected = "expected an IDX magic (two zero bytes, a dtype of 8, 9, 11, 12, 13 or 14, 1 to 8 dimensions), got ";
  CHECK(refusal_of("<html>oops") == expected + std::to_string(0x3c68746d));
  CHECK(refusal_of(idx(0x0A01, {1}, "x")) == expected + "2561");
  CHECK(refusal_of(idx(0x0800, {}, "x")) == expected + "2048");
  CHECK(refusal_of(idx(0x0809, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "x")) == expected + "2057");
}

TEST_CASE("idx: truncation is reported with expected and actual size") {
  CHECK(refusal_of("") == "expected an IDX file of at least 4 bytes, got 0");
  CHECK(refusal_of(big_endian(2051) + big_endian(2)) == "truncated: expected a header of 16 bytes, got 8");
  CHECK(refusal_of(two_images.substr(0, 23)) == "truncated: u8(2,2,2) expects 8 bytes after the header, got 7");
  CHECK(refusal_of(idx(0x0E01, {3}, "12345678")) == "truncated: f64(3) expects 24 bytes after the header, got 8");
}

TEST_CASE("idx: bytes after the end are reported") {
  CHECK(refusal_of(two_images + "x") == "trailing bytes: u8(2,2,2) expects 8 bytes after the header, got at least 9");
}

TEST_CASE("idx: sizes beyond memory are rejected before allocating") {
  CHECK(refusal_of(idx(2051, {0xffffffff, 0x3fffffff, 1}, "")) ==
        "truncated: u8(4294967295,1073741823,1) expects 4611686013058678785 bytes after the header, got 0");
  CHECK(refusal_of(idx(0x0E03, {0xffffffff, 0x3fffffff, 1}, "")) == "f64(4294967295,1073741823,1) expects more bytes than a file can have");
  CHECK(refusal_of(idx(2051, {0xffffffff, 0xffffffff, 1}, "")) ==
        "shape (4294967295,4294967295): expected at most 2^62 elements, got more");
}

TEST_CASE_FIXTURE(InFolder, "idx: of a gzip file no more is inflated than its header states") {
  const std::string path = folder.write("bomb.gz", gzip(two_images + std::string(1 << 20, '\0')));
  CHECK_ERROR(path + ": trailing bytes: u8(2,2,2) expects 8 bytes after the header, got at least 9", load_idx(path));
}

TEST_CASE("mnist: images and labels are found plain or packed, and scaled") {
  for (const bool packed : {false, true}) {
    const TemporaryFolder folder;
    if (packed)
      write_set(folder, gzip(two_images), gzip(two_labels), ".gz");
    else
      write_set(folder, two_images, two_labels);
    const auto data = load_mnist(folder.path() + "/", Split::train);
    CHECK(data->size() == 2);
    CHECK(data->name() == std::filesystem::path(folder.path()).filename().string() + " train");
    CHECK(data->x_type().shape == Shape{2, 2});
    CHECK(data->num_classes() == 10);
    Tensor x = Tensor::empty(DType::f32, {1, 2, 2}), y = Tensor::empty(DType::i64, {1});
    const std::vector<std::int64_t> first = {0};
    data->gather(first, x, y);
    CHECK(x.data<float>()[1] == 1.0f);
    CHECK(x.data<float>()[2] == doctest::Approx(0.2));
    CHECK(y.item() == 7.0);
  }
}

TEST_CASE_FIXTURE(InFolder, "mnist: missing folders and files are reported with the searched names") {
  CHECK_ERROR("/no/such: folder not found; expected one with t10k-images-idx3-ubyte[.gz]", load_mnist("/no/such", Split::test));
  CHECK(mnist_refusal(folder) == folder.path() + ": expected train-images-idx3-ubyte or train-images-idx3-ubyte.gz, got neither");
  folder.write("train-images-idx3-ubyte", two_images);
  CHECK(mnist_refusal(folder) == folder.path() + ": expected train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz, got neither");
}

TEST_CASE_FIXTURE(InFolder, "mnist: a file of another format is reported, also one that is not gzip") {
  write_set(folder, two_labels, two_labels);
  CHECK(mnist_refusal(folder) ==
        folder.file("train-images-idx3-ubyte") + ": expected magic 2051 (u8 with 3 dimensions), got 2049 (u8 with 1 dimension)");
  write_set(folder, two_images, two_images);
  CHECK(mnist_refusal(folder) ==
        folder.file("train-labels-idx1-ubyte") + ": expected magic 2049 (u8 with 1 dimension), got 2051 (u8 with 3 dimensions)");
  const TemporaryFolder packed;
  write_set(packed, "this is not gzip", two_labels, ".gz");
  CHECK(mnist_refusal(packed) ==
        packed.file("train-images-idx3-ubyte.gz") + ": expected magic 2051 (u8 with 3 dimensions), got 1952999795 (not an IDX file)");
  const std::string whole = gzip(two_images);
  write_set(packed, whole.substr(0, whole.size() - 3), two_labels, ".gz");
  CHECK(mnist_refusal(packed).find(packed.file("train-images-idx3-ubyte.gz") + ": gzip data is truncated") == 0);
}

TEST_CASE_FIXTURE(InFolder, "mnist: different counts of labels and images are reported with both files") {
  write_set(folder, two_images, idx(2049, {3}, "\x01\x02\x03"));
  CHECK(mnist_refusal(folder) == folder.file("train-labels-idx1-ubyte") + ": expected 2 labels, as many as " +
                                     folder.file("train-images-idx3-ubyte") + " has images, got 3");
}

TEST_CASE_FIXTURE(InFolder, "mnist: a label out of range is reported with its index, more classes are an option") {
  write_set(folder, two_images, idx(2049, {2}, std::string("\x00\x0a", 2)));
  CHECK(mnist_refusal(folder) ==
        folder.file("train-labels-idx1-ubyte") + ": label 10 of sample 1 is out of range, expected 0 to 9; num_classes sets the range");
  CHECK(mnist_refusal(folder, {.num_classes = 47}) == "no error");
}

namespace {

struct Facts {
  const char* folder;
  Split split;
  std::int64_t count;
  std::vector<std::int64_t> first_labels, labels_per_class;
  double mean;
  std::int64_t first_image_sum;
};

const std::vector<std::int64_t> thousands(10, 1000), six_thousands(10, 6000);
const Facts facts[] = {
    {"mnist",
     Split::train,
     60000,
     {5, 0, 4, 1, 9, 2, 1, 3, 1, 4},
     {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
     33.318421,
     27525},
    {"mnist",
     Split::test,
     10000,
     {7, 2, 1, 0, 4, 1, 4, 9, 5, 9},
     {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009},
     33.791224,
     18454},
    {"fashion-mnist", Split::train, 60000, {9, 0, 0, 3, 0, 2, 7, 2, 5, 5}, six_thousands, 72.940352, 76247},
    {"fashion-mnist", Split::test, 10000, {9, 2, 1, 1, 6, 1, 4, 6, 5, 7}, thousands, 73.146567, 33456},
};

}  // namespace

TEST_CASE("mnist: the real sets are read as their publishers describe them") {
  for (const Facts& fact : facts) {
    const std::string folder = std::string(TENON_SOURCE_DIRECTORY) + "/../shared/data/" + fact.folder;
    if (!std::filesystem::is_directory(folder)) {
      MESSAGE("skipped, because " << folder << " is not there");
      continue;
    }
    CAPTURE(folder);
    const auto data = load_mnist(folder, fact.split);
    REQUIRE(data->size() == fact.count);
    CHECK(data->x_type().shape == Shape{28, 28});
    const auto* label = data->y().data<std::int64_t>();
    CHECK(std::vector<std::int64_t>(label, label + 10) == fact.first_labels);
    std::vector<std::int64_t> per_class(10);
    for (std::int64_t i = 0; i < data->size(); ++i) ++per_class[static_cast<std::size_t>(label[i])];
    CHECK(per_class == fact.labels_per_class);
    const auto* pixel = data->x().data<std::uint8_t>();
    std::int64_t first = 0, sum = 0;
    for (std::int64_t i = 0; i < data->x().count(); ++i) {
      sum += pixel[i];
      if (i < 28 * 28) first += pixel[i];
    }
    CHECK(first == fact.first_image_sum);
    CHECK(static_cast<double>(sum) / static_cast<double>(data->x().count()) == doctest::Approx(fact.mean).epsilon(1e-7));
  }
}
