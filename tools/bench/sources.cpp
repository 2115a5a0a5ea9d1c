// SPDX-License-Identifier: Apache-2.0
#include "bench/sources.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include <tenon/data.h>
#include <tenon/npy.h>

#include "bench/temporary_folder.h"
#include "platform/file.h"
#include "platform/mapping.h"
#include "platform/memory.h"
#include "platform/path.h"
#include "platform/unbuffered_file.h"

namespace tenon::bench {
namespace {

namespace fs = std::filesystem;

struct AlignedDeleter {
  void operator()(void* memory) const { platform::free_aligned(memory); }
};
/// Memory aligned as reads past the page cache require.
std::unique_ptr<void, AlignedDeleter> page_memory(std::int64_t size_bytes) {
  return std::unique_ptr<void, AlignedDeleter>(platform::allocate_aligned(4096, static_cast<std::size_t>(size_bytes)));
}

platform::File opened(const std::string& path, bool unbuffered = false) {
  std::error_code error;
  platform::File file;
  if (unbuffered) {
    file = platform::open_unbuffered(path, error);
  } else {
    platform::InputFile input = platform::open_input(path);
    error = input.error;
    file = std::move(input.file);
  }
  if (error) throw Error(path + ": cannot be opened: " + platform::message_of(error));
  return file;
}

/// Reads a whole file into `memory`.
void read_all(const std::string& path, bool unbuffered, void* memory, std::int64_t size_bytes) {
  const platform::File file = opened(path, unbuffered);
  for (std::int64_t done = 0; done < size_bytes;) {
    std::uint64_t got = 0;
    const std::error_code error =
        file.read(static_cast<char*>(memory) + done, static_cast<std::uint64_t>(std::min<std::int64_t>(size_bytes - done, 8 << 20)), got);
    if (error || got == 0) throw Error(path + ": cannot be read: " + platform::message_of(error));
    done += static_cast<std::int64_t>(got);
  }
}

/// Maps a file and returns the sum of its words.
std::uint64_t sum_of_mapped(const std::string& path, std::int64_t size_bytes) {
  std::error_code error;
  const platform::Mapping mapping(opened(path), static_cast<std::size_t>(size_bytes), error);
  if (error) throw Error(path + ": cannot be mapped: " + platform::message_of(error));
  const auto* const words = reinterpret_cast<const std::uint64_t*>(mapping.address());
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < size_bytes / 8; ++i) sum += words[i];
  return sum;
}

void write_idx(const std::string& path, const Tensor& bytes) {
  std::ofstream file(path, std::ios::binary);
  const std::size_t rank = bytes.shape().rank();
  const auto word = [&](std::int64_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(value >> shift & 0xff));
  };
  word(0x0800 + static_cast<std::int64_t>(rank));
  for (const std::int64_t size : bytes.shape()) word(size);
  file.write(static_cast<const char*>(bytes.raw()), static_cast<std::streamsize>(bytes.count()));
}

/// Measures loading the same images from IDX files, arrays and one file each, all in the page cache, into a data set.
void add_data_sets(const TemporaryFolder& folder, const std::function<void(const std::string&, std::int64_t, const Body&)>& add,
                   bool tiny) {
  const std::int64_t count = tiny ? 20 : 5000, classes = 10, side = 28;
  Tensor x = Tensor::empty(DType::u8, {count, side, side}), y = Tensor::empty(DType::u8, {count});
  for (std::int64_t i = 0; i < x.count(); ++i) x.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
  for (std::int64_t i = 0; i < count; ++i) y.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % classes);
  write_idx(folder.path("train-images-idx3-ubyte"), x);
  write_idx(folder.path("train-labels-idx1-ubyte"), y);
  save_npy(folder.path("x.npy"), x);
  save_npy(folder.path("y.npy"), y);
  const fs::path images = platform::path_of(folder.path("images"));
  for (std::int64_t c = 0; c < classes; ++c) fs::create_directories(images / std::to_string(c));
  for (std::int64_t i = 0; i < count; ++i) {
    std::ofstream file(images / std::to_string(i % classes) / fmt::format("{:06}.pgm", i), std::ios::binary);
    file << "P5 " << side << ' ' << side << " 255\n";
    file.write(static_cast<const char*>(x.raw()) + i * side * side, side * side);
  }
  const std::string here = folder.path("");
  add("IDX files to a data set", x.count(), repeat([here] { static_cast<void>(load_mnist(here, Split::train)); }));
  add("arrays (.npy) to a data set", x.count(), repeat([here] { static_cast<void>(load_numpy(here, Split::train)); }));
  add("folder of images (.pgm) to a data set", x.count(),
      repeat([path = platform::text_of(images)] { static_cast<void>(load_image_folder(path, Split::train)); }));
}

}  // namespace

void add_sources(Report& report, const Options& options, const Protocol& protocol) {
  const TemporaryFolder folder;
  const std::string path = folder.path("bytes");
  const std::int64_t bytes = options.tiny ? 1 << 20 : std::int64_t{256} << 20;
  {
    const auto memory = page_memory(bytes);
    std::memset(memory.get(), 0x5a, static_cast<std::size_t>(bytes));
    std::error_code error;
    platform::File file = platform::open_output(path, false, error);
    for (std::int64_t done = 0; !error && done < bytes;) {
      std::uint64_t put = 0;
      error = file.write(static_cast<const char*>(memory.get()) + done, static_cast<std::uint64_t>(bytes - done), put);
      done += static_cast<std::int64_t>(put);
    }
    if (!error) error = file.flush();  // pending writes would disturb reads past the page cache
    if (error) throw Error(path + ": cannot be written: " + platform::message_of(error));
  }
  const auto add = [&](const std::string& name, std::int64_t size_bytes, const Body& body) {
    say("bandwidth: " + name);
    Entry entry{.name = name, .samples = measure({body}, protocol)[0]};
    entry.extra.emplace_back("gb_per_s", static_cast<double>(size_bytes) / entry.median_ns());
    report.add(std::move(entry));
  };
  const auto memory = page_memory(bytes);
  add("file to memory, in the page cache", bytes, repeat([&] { read_all(path, false, memory.get(), bytes); }));
  volatile std::uint64_t sink = 0;
  add("file mapped and read, in the page cache", bytes, repeat([&] { sink = sum_of_mapped(path, bytes); }));
  try {
    read_all(path, true, memory.get(), bytes);
    add("file to memory, O_DIRECT", bytes, repeat([&] { read_all(path, true, memory.get(), bytes); }));
  } catch (const Error& error) {
    report.note(fmt::format("file to memory, O_DIRECT: not run, {}", error.what()));
  }
  add_data_sets(folder, add, options.tiny);
  report.note(
      fmt::format("files: {} MB in {} (TMPDIR); O_DIRECT bypasses the page cache; data sets: bytes of pixels ready for batches, from "
                  "files in the page cache",
                  bytes >> 20, platform::text_of(fs::temp_directory_path())));
}

}  // namespace tenon::bench
