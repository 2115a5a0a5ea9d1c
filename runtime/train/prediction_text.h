// SPDX-License-Identifier: Apache-2.0
// train/prediction_text.h - predictions as text, JSON and CSV.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tenon/predictor.h>

namespace tenon::train {

/// Writes predictions, one line each.
struct PredictionText {
  std::size_t top_k = 1;      ///< classes per sample
  bool probabilities = true;  ///< scores are shown as percentages

  /// "photo.png: cat (98.1 %), dog (1.2 %), expected cat". Long outputs are summarised.
  std::string line(const Prediction& prediction) const;
  /// One object of JSON Lines, with the whole output.
  std::string json(const Prediction& prediction, std::int64_t index) const;
  /// The columns of csv() for predictions like this one.
  std::string csv_header(const Prediction& prediction) const;
  std::string csv(const Prediction& prediction) const;
};

}  // namespace tenon::train
