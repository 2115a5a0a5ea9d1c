// SPDX-License-Identifier: Apache-2.0
#include "device/process_guard.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstddef>

extern char** environ;

namespace tenon::opencl {
namespace {

std::set<std::string> variable_names() {
  std::set<std::string> names;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string text = *variable;
    names.insert(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace

ProcessGuard::ProcessGuard() : variables_(variable_names()) {
  for (int i = 1; i < signal_count; ++i) sigaction(i, nullptr, &actions_[static_cast<std::size_t>(i)]);
}

ProcessGuard::~ProcessGuard() {
  for (int i = 1; i < signal_count; ++i) {
    if (i != SIGKILL && i != SIGSTOP) sigaction(i, &actions_[static_cast<std::size_t>(i)], nullptr);
  }
  for (const std::string& name : variable_names()) {
    if (!variables_.contains(name)) unsetenv(name.c_str());
  }
}

}  // namespace tenon::opencl
