// SPDX-License-Identifier: Apache-2.0
// Files that others may change.
#include <windows.h>
// After windows.h.
#include <aclapi.h>
#include <sddl.h>

#include "loading.h"

namespace {

/// Gives a file or folder this list of access rights, in Microsoft's description language.
void set_access(const fs::path& path, const wchar_t* rules) {
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  REQUIRE(ConvertStringSecurityDescriptorToSecurityDescriptorW(rules, SDDL_REVISION_1, &descriptor, nullptr));
  REQUIRE(SetFileSecurityW(path.c_str(), DACL_SECURITY_INFORMATION, descriptor));
  LocalFree(descriptor);
}
constexpr const wchar_t* everyone_writes = L"D:(A;;FA;;;WD)";             ///< everyone has all rights
constexpr const wchar_t* everyone_reads = L"D:(A;;FA;;;BA)(A;;FR;;;WD)";  ///< administrators have all, everyone may read

struct InFolder {
  fs::path plugin() const {
    const fs::path file = folder.path() / backend_file_name("healthy");
    fs::copy_file(file_of("healthy"), file);
    return file;
  }
  const Scratch folder;
};

}  // namespace

TEST_CASE_FIXTURE(InFolder, "files: a file that everyone may write to is refused before it is opened") {
  const fs::path file = plugin();
  set_access(file, everyone_writes);
  const Loaded loaded({file});
  CHECK(loaded.only().reached == Stage::found);
  CHECK(loaded.only().status == TENON_INVALID_ARGUMENT);
  CHECK(contains(loaded.only().text, "every user may write to the file " + tenon::platform::text_of(file)));
  CHECK(contains(loaded.only().remedy, "icacls"));
  set_access(file, everyone_reads);
  CHECK(Loaded({file}).only().healthy);
}

TEST_CASE_FIXTURE(InFolder, "files: a folder that everyone may write to is refused, and others are used") {
  plugin();
  set_access(folder.path(), everyone_writes);
  const Loaded loaded({folder.path(), file_of("unloadable")});
  REQUIRE(loaded.result.records.size() == 2);
  CHECK_FALSE(loaded.result.records[0].healthy);
  CHECK(contains(loaded.result.records[0].text, "every user may write to the folder " + tenon::platform::text_of(folder.path())));
  CHECK(loaded.result.records[1].healthy);
}
