// SPDX-License-Identifier: Apache-2.0
// data/cifar10.cpp - the binary version of CIFAR-10: records of a label and the red, green and blue planes of an image.
//
// Source  Krizhevsky: Learning Multiple Layers of Features from Tiny Images (2009); the layout is that of the data set's own page.
#include <cstring>
#include <filesystem>

#include <tenon/data.h>

#include "data/files.h"
#include "io/gzip.h"
#include "platform/path.h"
#include "text/counted.h"

namespace tenon {
namespace {

constexpr std::size_t pixels = 3 * 32 * 32, record = 1 + pixels;

}  // namespace

std::vector<std::string> data::cifar10_files(const std::string& directory, Split split) {
  std::string folder = directory;
  const std::string inner = platform::text_of(platform::path_of(directory) / "cifar-10-batches-bin");
  if (is_folder(inner)) folder = inner;  // the folder in the archive
  if (split == Split::test) return {find_file(folder, {"test_batch.bin"})};
  std::vector<std::string> files;
  for (int i = 1; i <= 5; ++i) files.push_back(find_file(folder, {"data_batch_" + std::to_string(i) + ".bin"}));
  return files;
}

std::shared_ptr<const ArrayDataset> load_cifar10(const std::string& directory, Split split, const Cifar10Options& options) {
  const std::vector<std::string> files = data::cifar10_files(directory, split);
  std::vector<std::vector<std::uint8_t>> contents;
  std::size_t count = 0;
  for (const std::string& file : files) {
    contents.push_back(io::read_maybe_gzip(file));
    const std::size_t size = contents.back().size();
    if (size == 0 || size % record != 0) {
      throw Error(file + ": expected records of 3073 bytes, 10000 of them in the original, got " + std::to_string(size) + " bytes: " +
                  counted(size / record, "record") + " and " + counted(size % record, "extra byte") + "; download the file again");
    }
    count += size / record;
  }
  Tensor x = Tensor::empty(DType::u8, {static_cast<std::int64_t>(count), 3, 32, 32});
  Tensor y = Tensor::empty(DType::i64, {static_cast<std::int64_t>(count)});
  auto* image = x.data<std::uint8_t>();
  auto* label = y.data<std::int64_t>();
  for (std::size_t f = 0; f < files.size(); ++f) {
    for (std::size_t at = 0; at < contents[f].size(); at += record) {
      const std::uint8_t* from = contents[f].data() + at;
      if (from[0] > 9) {
        throw Error(files[f] + ": record " + std::to_string(at / record) + ": label " + std::to_string(from[0]) +
                    " is out of range, expected 0 to 9; CIFAR-100 has a different layout");
      }
      *label++ = from[0];
      std::memcpy(image, from + 1, pixels);
      image += pixels;
    }
    contents[f] = {};
  }
  ArrayOptions array;
  array.name = std::string("cifar10 ") + name_of(split);
  array.scaling = options.scaling;
  array.channels = options.channels;
  array.targets = options.targets;
  array.num_classes = 10;
  return std::make_shared<const ArrayDataset>(x, y, array);
}

}  // namespace tenon
