// SPDX-License-Identifier: Apache-2.0
// Output paths that are not regular files.
#include "io/output_target.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "io/atomic_file.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;
using io::write_atomically;
using platform::File;

namespace {

bool is_device(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISCHR(info.st_mode);
}

std::string read_some(const File& from) {
  std::array<char, 100> text{};
  const ssize_t got = ::read(static_cast<int>(from.native()), text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(got < 0 ? 0 : got)};
}

}  // namespace

TEST_CASE_FIXTURE(InFolder, "output: a device is written, and stays a device") {
  write_atomically("/dev/null", "text");
  CHECK(is_device("/dev/null"));
  CHECK_ERROR_CONTAINS("/dev/full: cannot be written: No space left on device", write_atomically("/dev/full", "text"));
  CHECK(is_device("/dev/full"));
  REQUIRE(symlink("/dev/null", folder.file("link").c_str()) == 0);
  write_atomically(folder.file("link"), "text");
  CHECK(is_device("/dev/null"));
}

TEST_CASE_FIXTURE(InFolder, "output: a pipe is written if somebody reads it, and an error otherwise") {
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_ERROR(pipe + ": cannot be written: it is a pipe or socket that nobody reads; start its reader first",
              write_atomically(pipe, "text"));
  const File reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  write_atomically(pipe, "text");
  CHECK(read_some(reader) == "text");
  CHECK(folder.count_files() == 1);
}

TEST_CASE_FIXTURE(InFolder, "output: /dev/fd/N goes to the open descriptor, behind what was written there") {
  const std::string path = folder.write("log", "");
  const File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  REQUIRE(::write(static_cast<int>(file.native()), "one ", 4) == 4);
  write_atomically("/dev/fd/" + std::to_string(file.native()), "two ");
  REQUIRE(::write(static_cast<int>(file.native()), "three", 5) == 5);
  CHECK(folder.read("log") == "one two three");
}

TEST_CASE_FIXTURE(InFolder, "output: a link of another user is not followed, one's own chain of links is") {
  const std::string victim = folder.write("victim", "precious");
  REQUIRE(symlink("victim", folder.file("inner").c_str()) == 0);
  REQUIRE(symlink(folder.file("inner").c_str(), folder.file("link").c_str()) == 0);
  write_atomically(folder.file("link"), "mine");
  CHECK(folder.read("victim") == "mine");
  REQUIRE(symlink("loop", folder.file("loop").c_str()) == 0);
  CHECK_ERROR_CONTAINS("loop: cannot be written: Too many levels of symbolic links", write_atomically(folder.file("loop"), "text"));
  if (geteuid() != 0) return;  // only root may give a link away
  REQUIRE(lchown(folder.file("inner").c_str(), 65534, 65534) == 0);
  const std::string expected = folder.file("link") + ": cannot be written: " + folder.file("inner") +
                               " is a symbolic link to victim that user 65534 made; expected one of your own: give the path of the file "
                               "itself, or remove the link";
  CHECK_ERROR(expected, write_atomically(folder.file("link"), "text"));
  CHECK_ERROR(expected, io::open_growing(folder.file("link"), io::Growth::truncate));
  CHECK(folder.read("victim") == "mine");
}

TEST_CASE_FIXTURE(InFolder, "output: a growing file is emptied or appended to") {
  const std::string path = folder.write("log", "old");
  REQUIRE(::write(static_cast<int>(io::open_growing(path, io::Growth::append).native()), "+new", 4) == 4);
  CHECK(folder.read("log") == "old+new");
  REQUIRE(::write(static_cast<int>(io::open_growing(path, io::Growth::truncate).native()), "new", 3) == 3);
  CHECK(folder.read("log") == "new");
  CHECK_ERROR(folder.file("no/log") + ": cannot be written: No such file or directory",
              io::open_growing(folder.file("no/log"), io::Growth::append));
}
