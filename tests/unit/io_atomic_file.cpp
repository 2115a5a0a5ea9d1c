// SPDX-License-Identifier: Apache-2.0
// Files that are replaced atomically.
#include "io/atomic_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <tenon/error.h>

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

TEST_CASE_FIXTURE(InFolder, "atomic file: new content replaces the old, and no other file is left") {
  const std::string path = folder.write("state", "old");
  write_atomically(path, "new content");
  CHECK(folder.read("state") == "new content");
  CHECK(folder.count_files() == 1);
  write_atomically(folder.file("first"), "");
  CHECK(folder.read("first").empty());
  CHECK(folder.count_files() == 2);
}

TEST_CASE_FIXTURE(InFolder, "atomic file: without commit the old file stays and the temporary one is removed") {
  const std::string path = folder.write("state", "old");
  {
    AtomicFile file(path);
    file.write("half", 4);
    CHECK(folder.read("state") == "old");
  }
  CHECK(folder.read("state") == "old");
  CHECK(folder.count_files() == 1);
}

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

TEST_CASE_FIXTURE(InFolder, "atomic file: of two writers of one file the last to commit wins, with its whole content") {
  const std::string path = folder.file("state");
  AtomicFile first(path), second(path);
  first.write("first", 5);
  second.write("sec", 3);
  first.commit();
  CHECK(folder.read("state") == "first");
  second.write("ond", 3);
  second.commit();
  CHECK(folder.read("state") == "second");
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

TEST_CASE_FIXTURE(InFolder, "atomic file: a missing folder and a folder at the path are reported") {
  const std::string path = folder.file("absent/state");
  CHECK_ERROR((path + ": cannot be written: folder " + folder.file("absent") + " does not exist").c_str(), AtomicFile{path});
  CHECK_ERROR((folder.path() + ": cannot be written: it is a folder").c_str(), AtomicFile{folder.path()});
  CHECK_ERROR(folder.file("new/") + ": cannot be written: expected the name of a file", AtomicFile{folder.file("new/")});
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

TEST_CASE_FIXTURE(InFolder, "atomic file: writing after commit is an internal error") {
  AtomicFile file(folder.file("state"));
  file.commit();
  CHECK_ERROR((folder.file("state") + ": write after commit").c_str(), file.write("x", 1));
  CHECK_ERROR((folder.file("state") + ": committed twice").c_str(), file.commit());
}
