// SPDX-License-Identifier: Apache-2.0
// Files that are replaced atomically: a full disk, a killed process, links and permissions.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <tenon/error.h>

#include "io/atomic_file.h"
#include "temporary_folder.h"

using namespace tenon;
using io::AtomicFile;
using io::write_atomically;
using namespace tenon::test;

namespace {

/// Limits files to `size_bytes` during its lifetime: the closest to a full disk that needs no privilege.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t size_bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{size_bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  void (*signal_)(int);
};

}  // namespace

TEST_CASE_FIXTURE(InFolder, "atomic file: a full disk is reported with path and bytes, the old file stays") {
  const std::string path = folder.write("state", "old");
  const std::string content(100000, 'x');
  std::string text;
  {
    const SmallDisk disk(65536);
    text = message_of([&] {
      AtomicFile file(path);
      file.write(content.data(), 1000);
      file.write(content.data(), content.size());
      file.commit();
    });
  }
  CHECK(text == path +
                    ": cannot be written: File too large after 65536 bytes, 35464 more expected; the previous file is unchanged; free "
                    "some space or choose another folder");
  CHECK(folder.read("state") == "old");
  CHECK(folder.count_files() == 1);
}

TEST_CASE_FIXTURE(InFolder, "atomic file: a process killed while writing leaves the old file, and nothing else") {
  const std::string path = folder.write("state", "old");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    AtomicFile file(path);
    file.write("half of a long text", 19);
    raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(folder.read("state") == "old");
  CHECK(folder.count_files() == 1);  // where the system has files without names: every local file system of Linux
  write_atomically(path, "new");
  CHECK(folder.read("state") == "new");
  CHECK(folder.count_files() == 1);
}

TEST_CASE_FIXTURE(InFolder, "atomic file: links planted under the names of temporary files are not written to") {
  const std::string victim = folder.write("victim", "precious");
  REQUIRE(symlink(victim.c_str(), folder.file("state.tmp").c_str()) == 0);
  write_atomically(folder.file("state"), "new");
  CHECK(folder.read("victim") == "precious");
}

TEST_CASE_FIXTURE(InFolder, "atomic file: the permissions of the old file are kept") {
  const std::string path = folder.write("state", "old");
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  write_atomically(path, "new");
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::all) == std::filesystem::perms(0600));
}

TEST_CASE("atomic file: a folder without permission is reported") {
  if (geteuid() == 0) {
    MESSAGE("skipped: root may write everywhere");
    return;
  }
  const TemporaryFolder folder;
  REQUIRE(chmod(folder.path().c_str(), 0500) == 0);
  CHECK_ERROR_CONTAINS("Permission denied", AtomicFile{folder.file("state")});
  REQUIRE(chmod(folder.path().c_str(), 0700) == 0);
}

TEST_CASE_FIXTURE(InFolder, "atomic file: a symbolic link is kept and its target is replaced") {
  folder.write("target", "old");
  REQUIRE(symlink("target", folder.file("link").c_str()) == 0);
  write_atomically(folder.file("link"), "new");
  CHECK(folder.read("target") == "new");
  CHECK(std::filesystem::is_symlink(folder.file("link")));
}
