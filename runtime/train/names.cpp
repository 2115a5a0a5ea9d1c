// SPDX-License-Identifier: Apache-2.0
#include "train/names.h"

namespace tenon::train {

const std::vector<yaml::Choice<Preset>>& presets() {
  static const std::vector<yaml::Choice<Preset>> words = {
      {"none", Preset::none}, {"keras", Preset::keras}, {"torch", Preset::torch}, {"gorgonia", Preset::gorgonia}};
  return words;
}

const std::vector<yaml::Choice<Initializer::Kind>>& initializers() {
  static const std::vector<yaml::Choice<Initializer::Kind>> words = {{"zeros", Initializer::Kind::zeros},
                                                                     {"ones", Initializer::Kind::ones},
                                                                     {"constant", Initializer::Kind::constant},
                                                                     {"uniform", Initializer::Kind::uniform},
                                                                     {"normal", Initializer::Kind::normal},
                                                                     {"glorot_uniform", Initializer::Kind::glorot_uniform},
                                                                     {"glorot_normal", Initializer::Kind::glorot_normal},
                                                                     {"he_uniform", Initializer::Kind::he_uniform},
                                                                     {"he_normal", Initializer::Kind::he_normal},
                                                                     {"lecun_uniform", Initializer::Kind::lecun_uniform},
                                                                     {"lecun_normal", Initializer::Kind::lecun_normal},
                                                                     {"fan_in_uniform", Initializer::Kind::fan_in_uniform},
                                                                     {"truncated_normal", Initializer::Kind::truncated_normal},
                                                                     {"orthogonal", Initializer::Kind::orthogonal},
                                                                     {"identity", Initializer::Kind::identity}};
  return words;
}

const std::vector<yaml::Choice<Activation>>& activations() {
  static const std::vector<yaml::Choice<Activation>> words = {{"linear", Activation::linear},   {"relu", Activation::relu},
                                                              {"sigmoid", Activation::sigmoid}, {"tanh", Activation::tanh},
                                                              {"softmax", Activation::softmax}, {"log_softmax", Activation::log_softmax},
                                                              {"relu6", Activation::relu6},     {"leaky_relu", Activation::leaky_relu},
                                                              {"elu", Activation::elu},         {"softplus", Activation::softplus},
                                                              {"mish", Activation::mish},       {"gelu", Activation::gelu},
                                                              {"silu", Activation::silu}};
  return words;
}

const std::vector<yaml::Choice<Schedule::Kind>>& schedules() {
  static const std::vector<yaml::Choice<Schedule::Kind>> words = {{"constant", Schedule::Kind::constant},
                                                                  {"step", Schedule::Kind::step},
                                                                  {"exponential", Schedule::Kind::exponential},
                                                                  {"cosine", Schedule::Kind::cosine},
                                                                  {"inv", Schedule::Kind::inv}};
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
const char* name_of(Initializer::Kind kind) {
  return yaml::word_of(train::initializers(), kind);
}
const char* name_of(Activation activation) {
  return yaml::word_of(train::activations(), activation);
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
