// SPDX-License-Identifier: Apache-2.0
#include "train/names.h"

namespace tenon::train {

const std::vector<yaml::Choice<Preset>>& presets() {
  static const std::vector<yaml::Choice<Preset>> words = {
      {"none", Preset::none}, {"keras", Preset::keras}, {"torch", Preset::torch}, {"gorgonia", Preset::gorgonia}};
  return words;
}

const std::vector<yaml::Choice<Schedule::Kind>>& schedules() {
  static const std::vector<yaml::Choice<Schedule::Kind>> words = {
      {"constant", Schedule::Kind::constant}, {"step", Schedule::Kind::step}, {"exponential", Schedule::Kind::exponential},
      {"cosine", Schedule::Kind::cosine},     {"inv", Schedule::Kind::inv},   {"one_cycle", Schedule::Kind::one_cycle},
      {"cyclic", Schedule::Kind::cyclic}};
  return words;
}

const std::vector<yaml::Choice<Normalize>>& normalizations() {
  static const std::vector<yaml::Choice<Normalize>> words = {{"unit", Normalize::unit},
                                                             {"gorgonia", Normalize::gorgonia},
                                                             {"standard", Normalize::standard},
                                                             {"per_channel", Normalize::per_channel},
                                                             {"none", Normalize::none}};
  return words;
}

const std::vector<yaml::Choice<DataCache>>& caches() {
  static const std::vector<yaml::Choice<DataCache>> words = {{"none", DataCache::none}, {"ram", DataCache::ram}, {"disk", DataCache::disk}};
  return words;
}

const std::vector<yaml::Choice<LogStyle>>& log_styles() {
  static const std::vector<yaml::Choice<LogStyle>> words = {{"keras", LogStyle::keras}, {"gorgonia", LogStyle::gorgonia}};
  return words;
}

}  // namespace tenon::train

namespace tenon {

const char* name_of(Preset preset) {
  return yaml::word_of(train::presets(), preset);
}
const char* name_of(Schedule::Kind kind) {
  return yaml::word_of(train::schedules(), kind);
}
const char* name_of(Normalize normalize) {
  return normalize == Normalize::given ? "mean and std" : yaml::word_of(train::normalizations(), normalize);
}
const char* name_of(DataCache cache) {
  return yaml::word_of(train::caches(), cache);
}
const char* name_of(LogStyle style) {
  return yaml::word_of(train::log_styles(), style);
}

}  // namespace tenon
