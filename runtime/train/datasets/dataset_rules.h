// SPDX-License-Identifier: Apache-2.0
// train/datasets/dataset_rules.h - the table of data sets. A new one needs an enumerator in tenon/train_definition.h and a row in the
// table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/data.h>
#include <tenon/train_definition.h>

namespace tenon::train {

using ArrayPointer = std::shared_ptr<const ArrayDataset>;

/// A data set as read or generated, without scaling.
struct DatasetParts {
  ArrayPointer train, test;              ///< test: null if the files have no test part
  std::vector<std::string> class_names;  ///< by label, as the files have them; empty: they have none
};

struct DatasetRule {
  DataSource source;
  const char* name;
  /// The keys of `data:` that only some data sets have.
  std::vector<std::string_view> keys;
  std::optional<Normalize> normalize;  ///< the default, as in DataDefinition::normalize
  const char* expected;                ///< the files it reads, for messages; null: it is generated
  /// The files of a part; empty: `path` has no such part. Null: it is generated.
  std::vector<std::string> (*files)(const std::string& path, Split split);
  DatasetParts (*load)(const DataDefinition& definition, const std::string& path, std::uint64_t seed);
  /// The names of the classes of a known set, by label.
  std::vector<std::string> class_names = {};

  bool takes(std::string_view key) const;
  bool reads_files() const { return files != nullptr; }
};
/// In the order in which messages list them.
std::span<const DatasetRule> dataset_rules();
const DatasetRule& rule_of(DataSource source);

}  // namespace tenon::train
