// SPDX-License-Identifier: Apache-2.0
// Files that are replaced atomically.
#include "io/atomic_file.h"

#include <doctest/doctest.h>

#include <tenon/error.h>

#include "temporary_folder.h"

using namespace tenon;
using io::AtomicFile;
using io::write_atomically;
using namespace tenon::test;

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

TEST_CASE_FIXTURE(InFolder, "atomic file: a missing folder and a folder at the path are reported") {
  const std::string path = folder.file("absent/state");
  CHECK_ERROR((path + ": cannot be written: folder " + folder.file("absent") + " does not exist").c_str(), AtomicFile{path});
  CHECK_ERROR((folder.path() + ": cannot be written: it is a folder").c_str(), AtomicFile{folder.path()});
  CHECK_ERROR(folder.file("new/") + ": cannot be written: expected the name of a file", AtomicFile{folder.file("new/")});
}

TEST_CASE_FIXTURE(InFolder, "atomic file: writing after commit is an internal error") {
  AtomicFile file(folder.file("state"));
  file.commit();
  CHECK_ERROR((folder.file("state") + ": write after commit").c_str(), file.write("x", 1));
  CHECK_ERROR((folder.file("state") + ": committed twice").c_str(), file.commit());
}
