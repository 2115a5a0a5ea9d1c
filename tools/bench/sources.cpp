// SPDX-License-Identifier: Apache-2.0
#include "bench/sources.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include <tenon/data.h>
#include <tenon/npy.h>

namespace tenon::bench {
namespace {

namespace fs = std::filesystem;

/// A temporary folder, removed with its contents.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "tenon-bandwidth-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Error(pattern + ": cannot be created: " + std::strerror(errno));
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

struct FileDescriptor {
  int fd;
  explicit FileDescriptor(int descriptor) : fd(descriptor) {}
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
};

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
/// Memory aligned as O_DIRECT requires.
std::unique_ptr<void, FreeDeleter> page_memory(std::int64_t size_bytes) {
  return std::unique_ptr<void, FreeDeleter>(std::aligned_alloc(4096, static_cast<std::size_t>(size_bytes)));
}

/// Reads a whole file into `memory`.
void read_all(const std::string& path, int flags, void* memory, std::int64_t size_bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (file.fd < 0) throw Error(path + ": cannot be opened: " + std::strerror(errno));
  for (std::int64_t done = 0; done < size_bytes;) {
    const ssize_t got =
        ::read(file.fd, static_cast<char*>(memory) + done, static_cast<std::size_t>(std::min<std::int64_t>(size_bytes - done, 8 << 20)));
    if (got <= 0) throw Error(path + ": cannot be read: " + std::strerror(errno));
    done += got;
  }
}

/// Maps a file and returns the sum of its words.
std::uint64_t sum_of_mapped(const std::string& path, std::int64_t size_bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* const memory = file.fd < 0 ? MAP_FAILED : ::mmap(nullptr, static_cast<std::size_t>(size_bytes), PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (memory == MAP_FAILED) throw Error(path + ": cannot be mapped: " + std::strerror(errno));
  const auto* const words = static_cast<const std::uint64_t*>(memory);
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < size_bytes / 8; ++i) sum += words[i];
  ::munmap(memory, static_cast<std::size_t>(size_bytes));
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
void add_data_sets(const Folder& folder, const std::function<void(const std::string&, std::int64_t, const Body&)>& add, bool tiny) {
  const std::int64_t count = tiny ? 20 : 5000, classes = 10, side = 28;
  Tensor x = Tensor::empty(DType::u8, {count, side, side}), y = Tensor::empty(DType::u8, {count});
  for (std::int64_t i = 0; i < x.count(); ++i) x.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
  for (std::int64_t i = 0; i < count; ++i) y.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % classes);
  write_idx(folder.file("train-images-idx3-ubyte"), x);
  write_idx(folder.file("train-labels-idx1-ubyte"), y);
  save_npy(folder.file("x.npy"), x);
  save_npy(folder.file("y.npy"), y);
  const fs::path images = folder.file("images");
  for (std::int64_t c = 0; c < classes; ++c) fs::create_directories(images / std::to_string(c));
  for (std::int64_t i = 0; i < count; ++i) {
    std::ofstream file(images / std::to_string(i % classes) / fmt::format("{:06}.pgm", i), std::ios::binary);
    file << "P5 " << side << ' ' << side << " 255\n";
    file.write(static_cast<const char*>(x.raw()) + i * side * side, side * side);
  }
  const std::string here = folder.file("");
  add("IDX files to a data set", x.count(), repeat([here] { static_cast<void>(load_mnist(here, Split::train)); }));
  add("arrays (.npy) to a data set", x.count(), repeat([here] { static_cast<void>(load_numpy(here, Split::train)); }));
  add("folder of images (.pgm) to a data set", x.count(),
      repeat([path = images.string()] { static_cast<void>(load_image_folder(path, Split::train)); }));
}

}  // namespace

void add_sources(Report& report, const Options& options, const Protocol& protocol) {
  const Folder folder;
  const std::string path = folder.file("bytes");
  const std::int64_t bytes = options.tiny ? 1 << 20 : std::int64_t{256} << 20;
  {
    const auto memory = page_memory(bytes);
    std::memset(memory.get(), 0x5a, static_cast<std::size_t>(bytes));
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (std::int64_t done = 0; done < bytes;) {
      const ssize_t put = ::write(file.fd, static_cast<const char*>(memory.get()) + done, static_cast<std::size_t>(bytes - done));
      if (put <= 0) throw Error(path + ": cannot be written: " + std::strerror(errno));
      done += put;
    }
    ::fsync(file.fd);  // pending writes would disturb reads with O_DIRECT
  }
  const auto add = [&](const std::string& name, std::int64_t size_bytes, const Body& body) {
    say("bandwidth: " + name);
    Entry entry{.name = name, .samples = measure({body}, protocol)[0]};
    entry.extra.emplace_back("gb_per_s", static_cast<double>(size_bytes) / entry.median_ns());
    report.add(std::move(entry));
  };
  const auto memory = page_memory(bytes);
  add("file to memory, in the page cache", bytes, repeat([&] { read_all(path, 0, memory.get(), bytes); }));
  volatile std::uint64_t sink = 0;
  add("file mapped and read, in the page cache", bytes, repeat([&] { sink = sum_of_mapped(path, bytes); }));
  try {
    read_all(path, O_DIRECT, memory.get(), bytes);
    add("file to memory, O_DIRECT", bytes, repeat([&] { read_all(path, O_DIRECT, memory.get(), bytes); }));
  } catch (const Error& error) {
    report.note(fmt::format("file to memory, O_DIRECT: not run, {}", error.what()));
  }
  add_data_sets(folder, add, options.tiny);
  report.note(
      fmt::format("files: {} MB in {} (TMPDIR); O_DIRECT bypasses the page cache; data sets: bytes of pixels ready for batches, from "
                  "files in the page cache",
                  bytes >> 20, fs::temp_directory_path().string()));
}

}  // namespace tenon::bench
