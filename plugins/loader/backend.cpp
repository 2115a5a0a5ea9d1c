// SPDX-License-Identifier: Apache-2.0
#include "loader/backend.h"

#include <algorithm>

namespace tenon::loader {

Backend::Backend(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Backend::~Backend() {
  try {
    parts_->table.table.shutdown(parts_->handle);
    parts_->table.table.destroy(parts_->handle);
  } catch (...) {
    // The contract forbids exceptions, and a destructor cannot report one. The rest of the backend keeps its library mapped.
    return;
  }
  if (parts_->library && (parts_->answer.info.flags & TENON_BACKEND_UNLOADABLE) != 0) parts_->library->close_at_end();
}

const std::string& Backend::name() const {
  return parts_->record.name;
}
const Record& Backend::record() const {
  return parts_->record;
}
std::uint32_t Backend::abi_minor() const {
  return parts_->abi_minor;
}
const tenon_backend_info& Backend::info() const {
  return parts_->answer.info;
}
const tenon_backend_table& Backend::table() const {
  return parts_->table.table;
}
tenon_backend* Backend::handle() const {
  return parts_->handle;
}
std::span<const tenon_device_info> Backend::devices() const {
  return parts_->devices;
}
std::span<const SwitchedOff> Backend::switched_off() const {
  return parts_->switched_off;
}

const SwitchedOff* Backend::find_switched_off(tenon_op op, std::uint32_t version) const {
  const auto& all = parts_->switched_off;
  const auto found = std::find_if(all.begin(), all.end(), [&](const SwitchedOff& off) { return off.op == op && off.version == version; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace tenon::loader
