// SPDX-License-Identifier: Apache-2.0
#include <tenon/decoder.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <tenon/error.h>

#include "core/log.h"
#include "core/state_of.h"
#include "train/model_state.h"

namespace tenon {
namespace {

/// The steps of a prompt that are computed at once. More gain little: its products fill the machine.
constexpr std::int64_t chunk = 32;

}  // namespace

struct Decoder::State {
  static constexpr const char* owner = "decoder";  ///< for state_of
  std::int64_t capacity = 0;
  std::int64_t weights_size_bytes = 0;
  std::shared_ptr<ParameterStore> store = std::make_shared<ParameterStore>();
  std::vector<layers::DecodingState> states;
  std::optional<Program> one, many;    ///< for 1 step and for `chunk` steps
  std::vector<std::int64_t> sequence;  ///< the labels that are in use
  Tensor x, steps, x_of_many, steps_of_many;
  bool has_dropped = false;

  /// Computes the next labels, as many as the program takes.
  const Tensor& run(Program& program, Tensor& labels, Tensor& indices, const std::int64_t* next) {
    const std::int64_t n = indices.count();
    for (std::int64_t i = 0; i < n; ++i) {
      if (labels.dtype() == DType::i32) {
        labels.data<std::int32_t>()[i] = static_cast<std::int32_t>(next[i]);
      } else {
        labels.data<std::int64_t>()[i] = next[i];
      }
      indices.data<std::int64_t>()[i] = static_cast<std::int64_t>(sequence.size()) + i;
    }
    const Tensor& scores = program.run({labels, indices}).front();
    sequence.insert(sequence.end(), next, next + n);
    return scores;
  }
};

Decoder::Decoder(Model& model, std::int64_t capacity) : state_(std::make_unique<State>()) {
  Model::State& source = state_of(model.state_);
  source.setup.expect_one_of_each("decoder");
  const Shape& sample = source.parameters.sample();
  if (sample.rank() != 1) {
    throw Error(fmt::format("decoder: expected a model whose samples are sequences of labels (time), got {}", sample.str()));
  }
  if (capacity < 0) throw Error(fmt::format("decoder: expected a capacity of at least 1 step, or 0, got {}", capacity));
  State& s = *state_;
  s.capacity = capacity == 0 ? sample[0] : capacity;
  s.one = source.programs.decoding(1, s.capacity, s.store, s.states);
  const DType labels = train::input_dtype(source.setup.definition);
  s.x = Tensor::zeros(labels, {1, 1});
  s.steps = Tensor::zeros(DType::i64, {1});
  if (s.capacity >= 2 * chunk) {
    s.many = source.programs.decoding(chunk, s.capacity, s.store, s.states);
    s.x_of_many = Tensor::zeros(labels, {1, chunk});
    s.steps_of_many = Tensor::zeros(DType::i64, {chunk});
  }
  for (const train::ParameterSpec& weight : source.parameters.weights()) {
    s.weights_size_bytes += weight.shape.count() * static_cast<std::int64_t>(size_of(weight.dtype));
  }
  reset();
}

Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

std::int64_t Decoder::capacity() const {
  return state_of(state_).capacity;
}

std::int64_t Decoder::position() const {
  return static_cast<std::int64_t>(state_of(state_).sequence.size());
}

std::int64_t Decoder::size_bytes() const {
  const State& s = state_of(state_);
  std::int64_t size = s.weights_size_bytes;
  for (const layers::DecodingState& state : s.states) size += state.shape.count() * static_cast<std::int64_t>(size_of(state.dtype));
  return size;
}

void Decoder::reset() {
  State& s = state_of(state_);
  for (const layers::DecodingState& state : s.states) s.store->fill(state.name, 0);
  s.sequence.clear();
}

Tensor Decoder::append(std::span<const std::int64_t> labels) {
  State& s = state_of(state_);
  if (labels.empty()) throw Error("decoder: expected at least one label, got none");
  std::vector<std::int64_t> next(labels.begin(), labels.end());
  if (position() + static_cast<std::int64_t>(next.size()) > s.capacity) {
    if (!std::exchange(s.has_dropped, true)) {
      log::info("decoder: more than {} steps; the older half of them is dropped each time they are full", s.capacity);
    }
    next.insert(next.begin(), s.sequence.begin(), s.sequence.end());
    const std::int64_t kept = std::max<std::int64_t>(1, s.capacity / 2);
    if (static_cast<std::int64_t>(next.size()) > kept) next.erase(next.begin(), next.end() - kept);
    reset();
  }
  Tensor scores;
  const std::int64_t* at = next.data();
  const std::int64_t* const end = at + next.size();
  for (; s.many && end - at >= chunk; at += chunk) scores = s.run(*s.many, s.x_of_many, s.steps_of_many, at);
  for (; at < end; ++at) scores = s.run(*s.one, s.x, s.steps, at);
  return scores.to_host();
}

}  // namespace tenon
