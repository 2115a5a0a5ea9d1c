// SPDX-License-Identifier: Apache-2.0
// The schema that is made of what the readers ask for.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "config/model_yaml.h"
#include "config/schema.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::config;
using namespace tenon::test;

namespace {

const SchemaBlock& block(const std::vector<SchemaBlock>& blocks, const std::string& kind, const std::string& name) {
  const auto found = std::ranges::find_if(blocks, [&](const SchemaBlock& b) { return b.kind == kind && b.name == name; });
  REQUIRE_MESSAGE(found != blocks.end(), kind << " " << name);
  return *found;
}

std::set<std::string> paths(const SchemaBlock& of) {
  std::set<std::string> result;
  for (const yaml::KnownKey& key : of.keys) result.insert(key.path);
  return result;
}

}  // namespace

TEST_CASE("schema: files and things have their keys, with type, range and default") {
  const std::vector<SchemaBlock> blocks = schema_of_readers();
  const auto key = [&](const std::string& kind, const std::string& name, const std::string& path) {
    const SchemaBlock& of = block(blocks, kind, name);
    const auto found = std::ranges::find(of.keys, path, &yaml::KnownKey::path);
    REQUIRE_MESSAGE(found != of.keys.end(), name << " " << path);
    return *found;
  };
  CHECK(paths(block(blocks, "layer", "dropout")) == std::set<std::string>{"p", "name", "device"});
  CHECK(key("layer", "dense", "units").required);
  CHECK(key("layer", "dense", "bias").expected == "true or false");
  CHECK(key("layer", "dense", "bias").default_value == "true");
  CHECK(key("", "train.yaml", "batch_size").expected == "an integer in [1, 1099511627776]");
  CHECK(key("", "train.yaml", "batch_size").default_value == "32");
  CHECK(key("", "train.yaml", "log_style").expected == "keras, gorgonia");
  CHECK(key("", "train.yaml", "checkpoint.directory").required);
  CHECK(key("", "model.yaml", "input.shape").required);
  CHECK(key("source", "tokens", "sequence").default_value == "35");
  CHECK(key("optimizer", "sgd", "momentum").default_value == "0");
  CHECK(key("loss", "huber", "delta").expected == "a number above 0");
  CHECK(key("schedule", "cosine", "length").default_value == "0");
  CHECK(key("callback", "checkpoint", "best").default_value == "false");
  CHECK(key("callback", "checkpoint", "monitor").expected == "a text");
  CHECK(paths(block(blocks, "", "train.yaml")).contains("optimizer"));
  CHECK_FALSE(paths(block(blocks, "", "train.yaml")).contains("memory.limit_mb"));  // of the table of tenon.yaml
}

TEST_CASE("schema: a layer's reader knows each of its keys and no other") {
  for (const SchemaBlock& of : schema_of_readers()) {
    if (of.kind != "layer" || of.name == "repeat") continue;
    CAPTURE(of.name);
    std::string keys;
    for (const std::string& path : paths(of)) {
      if (path.find('.') == std::string::npos) keys += path + ": [], ";
    }
    const std::string message = message_of([&] { model_from_text("layers: [{" + of.name + ": {" + keys + "nokey: 1}}]\n"); });
    for (const yaml::KnownKey& key : of.keys) CHECK_FALSE(contains(message, "unknown key '" + key.path + "'"));
  }
}

TEST_CASE("schema: as text it is a configuration with every key at its default") {
  CHECK(to_yaml(config_from_text(whole_schema()), false) == to_yaml(Config(), false));
  CHECK(contains(whole_schema(), "\n# layer dense\n#   units: an integer of at least 1; required\n"));
}
