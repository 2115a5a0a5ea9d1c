// SPDX-License-Identifier: Apache-2.0
// model.yaml: recurrent and attention layers.
#include "config/layers_yaml.h"

namespace tenon::config {
namespace {

using Kind = LayerDefinition::Kind;

constexpr Range<double> below_one{.lowest = 0, .highest = 1, .below_highest = true};

void read_recurrent(Section& section, const LayerContext& context, LayerDefinition& out_layer) {
  SequenceDefinition& sequence = out_layer.sequence;
  out_layer.units = section.require<std::int64_t>("units", "an integer of at least 1", from_one);
  sequence.num_layers = section.get<std::int64_t>("num_layers", 1, {1, 1000});
  sequence.bidirectional = section.get<bool>("bidirectional", false);
  sequence.dropout = section.get<double>("dropout", 0, below_one);
  sequence.return_sequences = section.get<bool>("return_sequences", false);
  if (out_layer.kind == Kind::lstm) {
    sequence.forget_bias = section.get<double>("forget_bias", context.preset == Preset::keras ? 1.0 : 0.0);
  }
  if (out_layer.kind == Kind::gru) sequence.linear_before_reset = section.get<bool>("linear_before_reset", true);
  if (out_layer.kind == Kind::rnn) {
    static const std::vector<Choice<bool>> activations = {{"tanh", false}, {"relu", true}};
    sequence.relu = section.choice("activation", false, activations);
  }
  read_weights(section, context.preset, out_layer);
  if (context.preset == Preset::torch) sequence.recurrent_initializer.kind = Initializer::Kind::fan_in_uniform;
  if (const auto initializer = section.find("recurrent_initializer"))
    sequence.recurrent_initializer = read_initializer(*initializer, context.preset);
}

void read_attention(Section& section, const LayerContext& context, LayerDefinition& out_layer) {
  out_layer.sequence.heads = section.get<std::int64_t>("heads", 1, from_one);
  out_layer.sequence.causal = section.get<bool>("causal", false);
  read_weights(section, context.preset, out_layer);
}

constexpr LayerReader readers[] = {
    {Kind::lstm, read_recurrent},
    {Kind::gru, read_recurrent},
    {Kind::rnn, read_recurrent},
    {Kind::attention, read_attention},
};

}  // namespace

std::span<const LayerReader> sequence_layer_readers() {
  return readers;
}

}  // namespace tenon::config
