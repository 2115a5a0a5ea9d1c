// SPDX-License-Identifier: Apache-2.0
#include "backend_under_test.h"

#include <fmt/format.h>

#include <chrono>

#include <tenon/error.h>
#include <tenon/sdk/kernel.h>

#include "loader/find.h"
#include "platform/path.h"

namespace tenon::conformance {
namespace {

/// The file or query function of a backend's name.
Source find_backend(const Options& options, const std::string& name) {
  for (const auto& [registered, query] : options.registered) {
    if (registered == name) return {{}, name, query, {}};
  }
  const std::filesystem::path folder = options.backend_directory.empty() ? options.plugin.parent_path() : options.backend_directory;
  const std::filesystem::path file = std::filesystem::absolute(folder / loader::backend_file_name(name));
  if (!std::filesystem::exists(file)) {
    throw Error(Status::device_not_found,
                fmt::format("conformance: no backend '{}': {} does not exist; name a file with --plugin", name, platform::text_of(file)));
  }
  return {file, name, nullptr, {}};
}

}  // namespace

Source under_test(const Options& options) {
  Source source;
  if (options.plugin.empty()) {
    source = find_backend(options, options.backend);
  } else {
    if (!std::filesystem::exists(options.plugin)) {
      throw Error(Status::device_not_found, fmt::format("conformance: {} does not exist", platform::text_of(options.plugin)));
    }
    source.file = std::filesystem::absolute(options.plugin);
    source.name = loader::backend_name_of(source.file).value_or(platform::text_of(source.file.stem()));
  }
  source.options = {options.options.begin(), options.options.end()};
  return source;
}

BackendUnderTest::BackendUnderTest(const Options& options) : device_(std::make_unique<Device>(under_test(options))) {
  set_f64(device_->computes_with(TENON_DTYPE_F64));
  if (device_->is_oracle()) return;
  try {
    oracle_ = std::make_unique<Device>(find_backend(options, options.oracle));
  } catch (const Error& e) {
    throw WrongUse(fmt::format("the oracle '{}': {}", options.oracle, e.what()));
  }
}

Verdict BackendUnderTest::run(const Case& test, std::uint64_t seed) const {
  if (test.dtype != TENON_DTYPE_NONE && !device_->computes_with(test.dtype)) {
    return {Class::not_run, fmt::format("the device does not compute with {}", sdk::name_of(test.dtype))};
  }
  CaseContext context(*device_, oracle_.get(), seed, shared_);
  const auto begin = std::chrono::steady_clock::now();
  Verdict verdict;
  try {
    test.run(context);
    verdict = {Class::pass, context.remark};
  } catch (const Failure& e) {
    verdict = {Class::fail, e.what(), e.facts};
  } catch (const Unsupported& e) {
    verdict = {Class::unsupported, e.what()};
  } catch (const NotRun& e) {
    verdict = {Class::not_run, e.what()};
  } catch (const std::exception& e) {
    verdict = {Class::fail, e.what()};
  } catch (...) {
    verdict = {Class::fail, "something that is not a std::exception was thrown through the plugin ABI"};
  }
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return verdict;
}

std::string BackendUnderTest::device() const {
  const char* product = device_->device_info().name;
  return fmt::format("{}:0 ({})", device_->backend().name(), product != nullptr ? product : "unnamed");
}

bool BackendUnderTest::device_lost() const {
  ErrorText error;
  return device_->synchronize(error) == TENON_DEVICE_LOST;
}

}  // namespace tenon::conformance
