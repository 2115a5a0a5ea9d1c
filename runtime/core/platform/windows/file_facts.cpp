// SPDX-License-Identifier: Apache-2.0
#include "platform/file_facts.h"

#include <windows.h>
// After windows.h.
#include <aclapi.h>
#include <sddl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ratio>
#include <vector>

#include "platform/path.h"
#include "platform/windows/handle.h"
#include "platform/windows/wide.h"

namespace tenon::platform {
namespace {

using windows::Handle;

bool is_well_known(PSID user, WELL_KNOWN_SID_TYPE type) {
  return IsWellKnownSid(user, type) != FALSE;
}

/// The owner that Windows gives its own files.
bool is_trusted_installer(PSID user) {
  PSID installer = nullptr;
  if (!ConvertStringSidToSidW(L"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464", &installer)) return false;
  const bool same = EqualSid(user, installer) != FALSE;
  LocalFree(installer);
  return same;
}

bool is_own(PSID user) {
  HANDLE opened = nullptr;
  if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &opened)) return false;
  const Handle token(opened);
  DWORD size = 0;
  GetTokenInformation(opened, TokenUser, nullptr, 0, &size);
  std::vector<std::max_align_t> bytes(size / sizeof(std::max_align_t) + 1);
  auto* const own = reinterpret_cast<TOKEN_USER*>(bytes.data());
  return GetTokenInformation(opened, TokenUser, own, size, &size) && EqualSid(own->User.Sid, user);
}

std::string user_name(PSID user) {
  wchar_t name[256], domain[256];
  DWORD name_size = 256, domain_size = 256;
  SID_NAME_USE use{};
  if (LookupAccountSidW(nullptr, user, name, &name_size, domain, &domain_size, &use)) return "user '" + windows::utf8(name) + "'";
  wchar_t* text = nullptr;
  if (!ConvertSidToStringSidW(user, &text)) return "another user";
  const std::string number = windows::utf8(text);
  LocalFree(text);
  return "user " + number;
}

/// The rights that the list gives to everyone by name.
ACCESS_MASK rights_of_everyone(ACL* list) {
  if (list == nullptr) return ~ACCESS_MASK{0};  // no list forbids nothing
  ACCESS_MASK granted = 0, denied = 0;
  for (DWORD i = 0; i < list->AceCount; ++i) {
    void* entry = nullptr;
    if (!GetAce(list, i, &entry)) break;
    const auto* const header = static_cast<const ACE_HEADER*>(entry);
    if ((header->AceFlags & INHERIT_ONLY_ACE) != 0) continue;
    // Both kinds have the same layout.
    if (header->AceType != ACCESS_ALLOWED_ACE_TYPE && header->AceType != ACCESS_DENIED_ACE_TYPE) continue;
    auto* const rule = static_cast<ACCESS_ALLOWED_ACE*>(entry);
    if (!is_well_known(&rule->SidStart, WinWorldSid)) continue;
    if (header->AceType == ACCESS_DENIED_ACE_TYPE) {
      denied |= rule->Mask & ~granted;
    } else {
      granted |= rule->Mask & ~denied;
    }
  }
  if ((granted & GENERIC_ALL) != 0) granted |= FILE_ALL_ACCESS;
  if ((granted & GENERIC_WRITE) != 0) granted |= FILE_GENERIC_WRITE;
  return granted;
}

}  // namespace

std::filesystem::file_time_type write_time(const std::filesystem::path& file) {
  WIN32_FILE_ATTRIBUTE_DATA facts;
  if (!GetFileAttributesExW(file.c_str(), GetFileExInfoStandard, &facts)) return std::filesystem::file_time_type::min();
  const std::uint64_t count = std::uint64_t{facts.ftLastWriteTime.dwHighDateTime} << 32 | facts.ftLastWriteTime.dwLowDateTime;
  // Units of 100 ns since 1601; 1970 is 11,644,473,600 seconds later.
  using Ticks = std::chrono::duration<std::int64_t, std::ratio<1, 10'000'000>>;
  const auto since_1970 = Ticks(static_cast<std::int64_t>(count)) - std::chrono::seconds(11'644'473'600);
  return std::chrono::file_clock::from_sys(std::chrono::sys_time<Ticks>(since_1970));
}

std::string file_stamp(const std::filesystem::path& file) {
  const Handle handle(CreateFileW(file.c_str(), FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  FILE_BASIC_INFO dates{};
  LARGE_INTEGER size{};
  if (!handle.is_open() || !GetFileSizeEx(handle.get(), &size)) return {};
  if (!GetFileInformationByHandleEx(handle.get(), FileBasicInfo, &dates, sizeof dates)) return {};
  return std::to_string(size.QuadPart) + " " + std::to_string(dates.LastWriteTime.QuadPart) + " " +
         std::to_string(dates.ChangeTime.QuadPart);
}

FileAccess file_access(const std::filesystem::path& path) {
  FileAccess access;
  PSID owner = nullptr;
  ACL* list = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  if (GetNamedSecurityInfoW(path.c_str(), SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &owner, nullptr, &list,
                            nullptr, &descriptor) != ERROR_SUCCESS) {
    return access;
  }
  const ACCESS_MASK rights = rights_of_everyone(list);
  // The bits of "write data" and "append data" mean "add a file" and "add a folder" in a folder.
  constexpr ACCESS_MASK adds = FILE_WRITE_DATA | FILE_APPEND_DATA, replaces = FILE_DELETE_CHILD | WRITE_DAC | WRITE_OWNER;
  access.everyone_writes = (rights & (adds | replaces)) != 0;
  access.only_adds = (rights & replaces) == 0;
  if (owner != nullptr && !is_well_known(owner, WinBuiltinAdministratorsSid) && !is_well_known(owner, WinLocalSystemSid) &&
      !is_trusted_installer(owner) && !is_own(owner)) {
    access.foreign_owner = user_name(owner);
  }
  LocalFree(descriptor);
  return access;
}

std::string command_to_forbid_writing(const std::filesystem::path& path) {
  return "icacls \"" + text_of(path) + "\" /inheritance:d /remove:g *S-1-1-0";
}

std::string command_to_take_over(const std::filesystem::path&) {
  return "";
}

}  // namespace tenon::platform
