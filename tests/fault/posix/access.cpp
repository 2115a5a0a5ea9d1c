// SPDX-License-Identifier: Apache-2.0
// Files that this user may not read, that others may change, and that are no files.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/image.h"
#include "loading.h"

namespace {

/// A folder under /tmp that any user may enter; the destructor removes it.
class OpenFolder {
 public:
  OpenFolder() : path_("/tmp/tenon_fault_XXXXXX") {
    REQUIRE(mkdtemp(path_.data()) != nullptr);
    fs::permissions(path_, fs::perms(0755));
  }
  ~OpenFolder() { fs::remove_all(path_); }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  fs::path path() const { return path_; }
  /// The healthy plugin, in this folder.
  fs::path plugin() const {
    const fs::path file = path() / "libtenon_backend_healthy.so";
    fs::copy_file(file_of("healthy"), file, fs::copy_options::overwrite_existing);
    fs::permissions(file, fs::perms(0644));
    return file;
  }

 private:
  std::string path_;
};

/// Runs body() in a process without root's rights, since permissions do not restrict root. Returns its result.
template <class Body>
bool holds_for_nobody(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    const uid_t nobody = 65534;
    const bool is_root = geteuid() == 0;
    if (is_root && (setegid(nobody) != 0 || seteuid(nobody) != 0)) _exit(2);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("files: a folder that anyone may write to is refused, and others are used") {
  const OpenFolder folder;
  folder.plugin();
  fs::permissions(folder.path(), fs::perms::others_write, fs::perm_options::add);
  const Loaded loaded({folder.path(), file_of("unloadable")});
  REQUIRE(loaded.result.records.size() == 2);
  CHECK_FALSE(loaded.result.records[0].healthy);
  CHECK(contains(loaded.result.records[0].text, "every user may write to the folder " + folder.path().string()));
  CHECK(loaded.result.records[0].remedy == "chmod o-w " + folder.path().string());
  CHECK(loaded.result.records[1].healthy);
}

TEST_CASE("files: a dangling symbolic link is reported as such, found in a folder or named") {
  const OpenFolder folder;
  const fs::path link = folder.path() / "libtenon_backend_dangling.so";
  fs::create_symlink("nowhere.so", link);
  for (const fs::path& place : {folder.path(), link}) {
    CAPTURE(place);
    const Loaded loaded({place});
    CHECK(loaded.only().reached == Stage::named);
    CHECK(contains(loaded.only().text, "the file is a symbolic link to nothing"));
    CHECK_FALSE(loaded.only().remedy.empty());
  }
}

TEST_CASE("files: a file that this user may not read is reported as such") {
  const OpenFolder folder;
  const fs::path file = folder.plugin();
  fs::permissions(file, fs::perms::none);
  CHECK(holds_for_nobody([&] {
    const Loaded loaded({file});
    const Record& record = loaded.result.records.at(0);
    return record.reached == Stage::named && record.text == "the file cannot be read: Permission denied" &&
           record.remedy == "give this user permission to read it";
  }));
}

TEST_CASE("files: a folder that this user may not read is reported as a place") {
  const OpenFolder folder;
  folder.plugin();
  fs::permissions(folder.path(), fs::perms::none);
  CHECK(holds_for_nobody([&] {
    const Loaded loaded({folder.path()});
    return loaded.result.records.empty() && loaded.result.places.at(0).text == "the folder cannot be read: Permission denied";
  }));
  fs::permissions(folder.path(), fs::perms(0755));
}

TEST_CASE("files: a file that anyone may write to is refused before it is opened") {
  const OpenFolder folder;
  const fs::path file = folder.plugin();
  fs::permissions(file, fs::perms(0646));
  const Loaded loaded({file});
  CHECK(loaded.only().reached == Stage::found);
  CHECK(loaded.only().status == TENON_INVALID_ARGUMENT);
  CHECK(contains(loaded.only().text, "every user may write to the file " + file.string()));
  CHECK(loaded.only().remedy == "chmod o-w " + file.string());
}

TEST_CASE("files: write permission of the owner's group is accepted") {
  const OpenFolder folder;
  const fs::path file = folder.plugin();
  fs::permissions(file, fs::perms(0664));
  fs::permissions(folder.path(), fs::perms(0775));
  const Loaded loaded({folder.path()});
  CHECK(loaded.only().healthy);
  CHECK(loaded.only().exposures.empty());
}

TEST_CASE("files: in a sticky folder that anyone may write to, only a file that was named is used") {
  const OpenFolder folder;
  const fs::path file = folder.plugin();
  fs::permissions(folder.path(), fs::perms(01777));
  const Loaded searched({folder.path()});
  CHECK_FALSE(searched.only().healthy);
  CHECK(contains(searched.only().text, "every user may write to the folder " + folder.path().string()));
  const Loaded named({file});
  CHECK(named.only().healthy);
  CHECK(named.only().exposures.empty());
}

TEST_CASE("files: a file of a user other than this one and root causes a warning") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can give a file away");
    return;
  }
  const OpenFolder folder;
  const fs::path file = folder.plugin();
  REQUIRE(chown(file.c_str(), 54321, 0) == 0);
  const Loaded loaded({file});
  CHECK(loaded.only().healthy);
  CHECK(is_exposed(loaded.only(), "the file " + file.string() + " belongs to user 54321"));
  CHECK(is_exposed(loaded.only(), "(chown root " + file.string() + ")"));
}

TEST_CASE("files: a pipe in a search folder is not opened") {
  const OpenFolder folder;
  const fs::path pipe = folder.path() / "libtenon_backend_pipe.so";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(checksum(pipe).empty());
  CHECK(read_image(pipe).kind == BinaryImage::Kind::empty);
}
