// SPDX-License-Identifier: Apache-2.0
// train/datasets/preprocessing.h - scaling and class names of the data of a train.yaml, shared by training and prediction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/train_definition.h>
#include <tenon/training_run.h>

namespace tenon::train {

/// One scaling, or one per index of a sample's first axis, for the samples of all parts.
/// Errors  samples that data.normalize does not apply to.
std::vector<Scaling> scalings_for(const DataDefinition& definition, const ArrayDataset& train);
/// The options with these scalings.
ArrayOptions with_scalings(ArrayOptions options, const std::vector<Scaling>& scalings);
/// data.class_names, else those that the files have, else those of a known set; empty: none of these. `classes` is the number of classes,
/// if known. Errors  another number of names than of classes.
std::vector<std::string> class_names_of(const DataDefinition& definition, const std::vector<std::string>& in_files,
                                        std::optional<std::int64_t> classes);

/// True if the preprocessing is a part of the definition: its data need not be read for it.
bool defines_preprocessing(const DataDefinition& definition);
/// Samples without targets, scaled as the training data. Without scalings, they follow from the definition and the dtype of the samples.
/// Errors  another dtype than the training data has.
Tensor prepare_samples(const Tensor& stored, const DataDefinition& definition, const Preprocessing& preprocessing, const std::string& name);

/// As text, for files.
std::string preprocessing_to_json(const Preprocessing& preprocessing);
/// Errors  a text that preprocessing_to_json did not write.
Preprocessing preprocessing_from_json(const std::string& text);

}  // namespace tenon::train
