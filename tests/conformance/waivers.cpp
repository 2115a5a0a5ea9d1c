// SPDX-License-Identifier: Apache-2.0
#include "waivers.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>

#include <tenon/error.h>

#include "loader/find.h"
#include "platform/path.h"

namespace tenon::conformance {
namespace {

std::vector<Waiver> list_of(const YAML::Node& node, const std::string& file, const std::string& key) {
  std::vector<Waiver> waivers;
  if (!node || node.IsNull()) return waivers;
  const auto refuse = [&](const YAML::Node& at, const char* text) {
    throw Error(fmt::format("{}:{}: {}: {}", file, at.Mark().line + 1, key, text));
  };
  if (!node.IsSequence()) refuse(node, "expected a list of {match: GLOB, reason: TEXT}");
  for (const YAML::Node& entry : node) {
    if (!entry.IsMap() || entry.size() != 2 || !entry["match"] || !entry["reason"]) refuse(entry, "expected {match: GLOB, reason: TEXT}");
    waivers.push_back({entry["match"].as<std::string>(), entry["reason"].as<std::string>()});
    if (waivers.back().reason.empty()) refuse(entry, "the reason is empty");
  }
  return waivers;
}

std::vector<std::string> globs_of(const YAML::Node& node, const std::string& file) {
  std::vector<std::string> globs;
  if (!node) return globs;
  if (node.IsSequence()) {
    for (const YAML::Node& entry : node) {
      if (entry.IsScalar() && !entry.Scalar().empty()) globs.push_back(entry.Scalar());
    }
  }
  if (globs.empty() || globs.size() != node.size())
    throw Error(fmt::format("{}:{}: supported: expected a list of globs over case names", file, node.Mark().line + 1));
  return globs;
}

bool matches_any(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return loader::matches_glob(glob, name); });
}

const Waiver* find(const std::vector<Waiver>& waivers, const std::string& name) {
  for (const Waiver& waiver : waivers) {
    if (loader::matches_glob(waiver.match, name)) return &waiver;
  }
  return nullptr;
}

}  // namespace

Waivers Waivers::read(const std::filesystem::path& file) {
  Waivers waivers;
  if (!std::filesystem::exists(file)) return waivers;
  try {
    std::ifstream stream(file);  // YAML::LoadFile takes narrow paths
    if (!stream) throw Error(fmt::format("{}: cannot be read", platform::text_of(file)));
    const YAML::Node root = YAML::Load(stream);
    if (root.IsNull()) return waivers;
    for (const auto& entry : root) {
      const auto key = entry.first.as<std::string>();
      if (key != "supported" && key != "unsupported" && key != "expected_failures") {
        throw Error(fmt::format("{}:{}: unknown key '{}', expected supported, unsupported or expected_failures", platform::text_of(file),
                                entry.first.Mark().line + 1, key));
      }
    }
    waivers.supported = globs_of(root["supported"], platform::text_of(file));
    waivers.unsupported = list_of(root["unsupported"], platform::text_of(file), "unsupported");
    waivers.expected_failures = list_of(root["expected_failures"], platform::text_of(file), "expected_failures");
  } catch (const YAML::Exception& e) {
    throw Error(fmt::format("{}:{}: {}", platform::text_of(file), e.mark.line + 1, e.msg));
  }
  return waivers;
}

std::vector<std::string> Waivers::matching_none(const std::vector<Result>& results) const {
  std::vector<std::string> globs = supported;
  for (const auto* list : {&unsupported, &expected_failures}) {
    for (const Waiver& waiver : *list) globs.push_back(waiver.match);
  }
  const auto matches_a_result = [&](const std::string& glob) {
    return std::any_of(results.begin(), results.end(), [&](const Result& r) { return loader::matches_glob(glob, r.name); });
  };
  globs.erase(std::remove_if(globs.begin(), globs.end(), matches_a_result), globs.end());
  return globs;
}

void Waivers::apply(Result& result) const {
  if (result.outcome == Class::unsupported) {
    if (const Waiver* waiver = find(unsupported, result.name)) {
      result.outcome = Class::excluded;
      result.text = waiver->reason;
    } else if (!supported.empty() && !matches_any(supported, result.name)) {
      result.outcome = Class::excluded;
      result.text = "not among the cases that conformance.yaml lists under 'supported'";
    }
    return;
  }
  const Waiver* expected = find(expected_failures, result.name);
  if (expected == nullptr) return;
  if (result.outcome == Class::fail) {
    result.outcome = Class::excluded;
    result.text = "fails as expected: " + expected->reason;
  } else if (result.outcome == Class::pass) {
    result.outcome = Class::fail;
    result.text = fmt::format("passes, although conformance.yaml expects a failure under '{}' ({}): remove the entry", expected->match,
                              expected->reason);
  }
}

}  // namespace tenon::conformance
