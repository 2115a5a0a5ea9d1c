// SPDX-License-Identifier: Apache-2.0
// Packed operands, if offered: which plans share them, what they hold in which epoch, and how long they live.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "core.h"

namespace tenon::conformance {
namespace {

/// y = x w or a convolution, on integers, with weights of a kind. Backends pack different ones.
struct Layer {
  const char* name;
  tenon_op op;
  Dims x, w, y;  ///< of one sample; the first dimension of x and y is the batch
};
const Layer layers[] = {
    {"a product", TENON_OP_MatMul, {1, 8}, {8, 6}, {1, 6}},
    {"a convolution", TENON_OP_Conv, {1, 4, 9, 9}, {6, 4, 3, 3}, {1, 6, 7, 7}},
    {"a transposed convolution", TENON_OP_ConvTranspose, {1, 4, 5, 5}, {4, 6, 3, 3}, {1, 6, 7, 7}},
};

/// Integers from -5 to 5; those of neighbouring seeds have different sums of products.
Array numbers(const Dims& shape, std::int64_t seed) {
  Array array(TENON_DTYPE_F32, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, static_cast<double>((i + seed) * (i + 2 * seed + 5) % 11 - 5));
  return array;
}

constexpr std::uint32_t weights = 1;  // the index of their value

Net net_of(const Layer& layer, std::int64_t batch, std::uint32_t kind, Dims w_shape = {}) {
  Dims x = layer.x, y = layer.y;
  x[0] = y[0] = batch;
  if (w_shape.empty()) w_shape = layer.w;
  Net net;
  net.input(numbers(x, 1));
  net.input(numbers(w_shape, 2), {}, kind);
  net.output(TENON_DTYPE_F32, y);
  std::vector<std::uint32_t> inputs{0, weights};
  tenon_attributes_conv conv{.struct_size = sizeof conv, .groups = 1, .strides = {1, 1, 1}, .dilations = {1, 1, 1}};
  const bool is_product = layer.op == TENON_OP_MatMul;
  if (!is_product) inputs.push_back(TENON_NO_INDEX);  // no bias
  net.node(layer.op, line_of(layer.op).version, is_product ? static_cast<const void*>(&no_attributes) : &conv, inputs, {2});
  return net;
}

const tenon_pack_table& pack_block(const CaseContext& context) {
  return block_of(context.device.table().pack, "pack");
}

/// How the plan of a graph reads its weights packed; nothing if it reads them as they are. Forms are further apart than they are long, as a
/// newer core's are.
std::optional<tenon_packing> described(const CaseContext& context, const Net& net) {
  const AbiGraph abi_graph(net);
  const tenon_plan_options options = default_options();
  constexpr std::uint32_t stride = sizeof(tenon_packing) + 16;
  std::vector<unsigned char> bytes(net.values.size() * stride, 0);
  expect_ok("pack describe", pack_block(context).describe, context.device.handle(), &abi_graph.graph, &options,
            reinterpret_cast<tenon_packing*>(bytes.data()), stride);
  std::optional<tenon_packing> found;
  for (std::uint32_t v = 0; v < net.values.size(); ++v) {
    const unsigned char* const own = bytes.data() + std::size_t{v} * stride;
    if (std::any_of(own + sizeof(tenon_packing), own + stride, [](unsigned char byte) { return byte != 0; }))
      fail(fmt::format("pack describe wrote beyond the form of value {}: expected forms {} bytes apart", v, stride));
    tenon_packing packing;
    std::memcpy(static_cast<void*>(&packing), own, sizeof packing);
    if (std::memchr(packing.key, 0, sizeof packing.key) == nullptr)
      fail(fmt::format("the key of a packed operand does not end in NUL within {} bytes", sizeof packing.key));
    if (packing.key[0] == 0) continue;
    if (v != weights) fail(fmt::format("value {}, neither a parameter nor a constant, has the key '{}'", v, packing.key));
    if (packing.size_bytes == 0) fail("a packed operand with elements has a size of 0 bytes");
    found = packing;
  }
  return found;
}

/// Weights that the backend has packed for a graph.
class Packed {
 public:
  Packed(const CaseContext& context, const Net& net) : block_(pack_block(context)) {
    const AbiGraph abi_graph(net);
    const tenon_plan_options options = default_options();
    expect_ok("pack create", block_.create, context.device.handle(), &abi_graph.graph, &options, &weights, 1u, &handle);
    if (handle == nullptr) fail("pack create returned OK and left its out-parameter NULL");
  }
  ~Packed() { destroy(); }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  void destroy() {
    if (handle != nullptr) block_.destroy(std::exchange(handle, nullptr));
  }
  tenon_packed* handle = nullptr;

 private:
  const tenon_pack_table& block_;
};

/// The layers whose weights the backend packs and shares.
std::vector<Layer> packed_layers(const CaseContext& context, std::uint32_t kind) {
  pack_block(context);
  std::vector<Layer> packed;
  for (const Layer& layer : layers) {
    const bool listed = (context.device.capability(layer.op, line_of(layer.op).version) & TENON_DTYPE_BIT(TENON_DTYPE_F32)) != 0;
    if (listed && described(context, net_of(layer, 1, kind))) packed.push_back(layer);
  }
  if (packed.empty()) throw NotRun("the backend shares the packed weights of neither products nor convolutions in f32");
  return packed;
}

/// Another batch whose plan reads the weights in the same form; 1 if there is none.
std::int64_t batch_of_same_form(const CaseContext& context, const Layer& layer, std::uint32_t kind) {
  const std::string key = described(context, net_of(layer, 1, kind))->key;
  for (const std::int64_t batch : {8, 2}) {
    const std::optional<tenon_packing> other = described(context, net_of(layer, batch, kind));
    if (other && key == other->key) return batch;
  }
  return 1;
}

/// Plans of two batch sizes that share packed weights.
struct Sharing {
  Sharing(const CaseContext& c, const Layer& layer, std::uint32_t kind)
      : context(c),
        alone{net_of(layer, 1, kind), net_of(layer, batch_of_same_form(c, layer, kind), kind)},
        packed(c, alone[0]),
        nets{with(alone[0], packed.handle), with(alone[1], packed.handle)},
        first(c.device, nets[0]),
        second(c.device, nets[1]) {
    expect_ready(first);
    expect_ready(second);
  }
  static Net with(Net net, tenon_packed* handle) {
    net.values[weights].packed = handle;
    return net;
  }
  /// The result of a plan that shares nothing.
  Array expected(int plan, const Array& w) const {
    Net net = alone[plan];
    net.values[weights].array = w;
    const Plan own(context.device, net);
    expect_ready(own);
    const Outcome outcome = own.run();
    if (!outcome.ok()) fail(fmt::format("a plan that shares nothing: {}: {}", status_name(outcome.status), outcome.text));
    return outcome.outputs[0];
  }
  static void expect(const Array& expected, const Outcome& outcome, const std::string& when) {
    if (!outcome.ok()) fail(fmt::format("{}: execution failed with {}: {}", when, status_name(outcome.status), outcome.text));
    if (!outcome.damage.empty()) fail(fmt::format("{}: the execution {}", when, outcome.damage));
    // Sums of 36 products of numbers up to 5: in f32 any two algorithms differ by less, and two sets of weights by more.
    const std::string wrong = compare(expected, outcome.outputs[0], {.absolute = 1e-3});
    if (!wrong.empty()) fail(fmt::format("{}: {}", when, wrong));
  }
  const CaseContext& context;
  const Net alone[2];
  Packed packed;
  const Net nets[2];
  const Plan first, second;
};

/// Equal keys for the same operand; plans read what was handed over, and keep it.
void shared(CaseContext& context, std::uint32_t kind) {
  for (const Layer& layer : packed_layers(context, kind)) {
    const std::uint64_t live = stats_of(context).live_size_bytes;
    {
      const Net net = net_of(layer, 1, kind);
      if (std::string(described(context, net)->key) != described(context, net)->key)
        fail(fmt::format("{}: the same operand described twice has different keys", layer.name));
      Sharing both(context, layer, kind);
      const Plan alone(context.device, net);
      expect_ready(alone);
      const std::uint64_t own = both.first.info().packed_size_bytes, all = alone.info().packed_size_bytes;
      if (own >= all && all > 0)
        fail(fmt::format("{}: plan_info counts {} packed bytes in a plan that was handed its weights, and {} in one that was not",
                         layer.name, own, all));
      const Array& w = net.values[weights].array;
      const Array expected[] = {both.expected(0, w), both.expected(1, w)};
      Plan::Bindings first(both.first, 0xFF), second(both.second, 0x40);
      Sharing::expect(expected[0], first.execute(1), fmt::format("{} with shared weights", layer.name));
      Sharing::expect(expected[1], second.execute(1), fmt::format("{}, the second plan of shared weights", layer.name));
      both.packed.destroy();
      Sharing::expect(expected[0], first.execute(1), fmt::format("{}, after its packed operand was destroyed", layer.name));
      Sharing::expect(expected[1], second.execute(1), fmt::format("{}, after its packed operand was destroyed", layer.name));
      Sharing::expect(expected[1], second.execute(2), fmt::format("{}, a new epoch after its packed operand was destroyed", layer.name));
    }
    const std::uint64_t left = stats_of(context).live_size_bytes;
    if (left != live) fail(fmt::format("{}: a packed operand and its plans left {} bytes of device memory", layer.name, left - live));
  }
}
void shared_parameters(CaseContext& context) {
  shared(context, TENON_VALUE_PARAMETER);
}
void shared_constants(CaseContext& context) {
  shared(context, TENON_VALUE_CONSTANT);
}

/// Whichever plan comes first in an epoch packs the parameter for all.
void epochs(CaseContext& context) {
  for (const Layer& layer : packed_layers(context, TENON_VALUE_PARAMETER)) {
    const Sharing both(context, layer, TENON_VALUE_PARAMETER);
    Plan::Bindings bindings[] = {{both.first, 0xFF}, {both.second, 0xFF}};
    const auto run = [&](int plan, std::uint64_t epoch, const Array& w) {
      Sharing::expect(both.expected(plan, w), bindings[plan].execute(epoch),
                      fmt::format("{}, plan {} in epoch {}", layer.name, plan + 1, epoch));
    };
    const auto change = [&](std::int64_t seed) {
      Array w = numbers(layer.w, seed);
      for (Plan::Bindings& b : bindings) b.set(weights, w);
      return w;
    };
    run(0, 1, both.alone[0].values[weights].array);
    Array w = change(5);
    run(1, 2, w);
    run(0, 2, w);
    w = change(6);
    run(0, 7, w);
    run(1, 7, w);
    w = change(3);
    run(1, 1, w);  // any other epoch is a new one
    run(0, 1, w);
  }
}

/// Two threads execute the plans, each on its own stream.
void threads(CaseContext& context) {
  for (const Layer& layer : packed_layers(context, TENON_VALUE_PARAMETER)) {
    const Sharing both(context, layer, TENON_VALUE_PARAMETER);
    Plan::Bindings bindings[] = {{both.first, 0xFF}, {both.second, 0xFF}};
    const Stream streams[] = {Stream(context), Stream(context)};
    for (int epoch = 1; epoch <= (small_sizes() ? 4 : 20); ++epoch) {
      const Array w = numbers(layer.w, epoch);
      const Array expected[] = {both.expected(0, w), both.expected(1, w)};
      on_threads(2, [&](int thread) {
        bindings[thread].set(weights, w);
        for (int round = 0; round < 4; ++round) {
          Sharing::expect(expected[thread], bindings[thread].execute(static_cast<std::uint64_t>(epoch), streams[thread]),
                          fmt::format("{}, thread {} of 2 whose plans share weights, in epoch {}", layer.name, thread, epoch));
        }
      });
    }
  }
}

/// Whoever records a plan in an epoch in which it was never executed takes acceptance for a promise that it packs nothing: so it is
/// refused, also if another plan has packed that epoch.
void recorded(CaseContext& context) {
  const tenon_capture_table& capture = block_of(context.device.table().capture, "capture");
  for (const Layer& layer : packed_layers(context, TENON_VALUE_PARAMETER)) {
    const Sharing both(context, layer, TENON_VALUE_PARAMETER);
    Plan::Bindings first(both.first, 0xFF), second(both.second, 0xFF);
    const Array before = both.alone[0].values[weights].array, after = numbers(layer.w, 5);
    Sharing::expect(both.expected(0, before), first.execute(1), fmt::format("{}, plan 1 in epoch 1", layer.name));
    first.set(weights, after);
    second.set(weights, after);
    Sharing::expect(both.expected(1, after), second.execute(2), fmt::format("{}, plan 2 in epoch 2", layer.name));
    ErrorText error, ignored;
    tenon_stream* const stream = context.device.stream();
    const tenon_status begun = capture.begin(stream, error);
    if (begun == TENON_UNSUPPORTED) throw NotRun("this device records nothing: " + error.text());
    expect_ok(begun, error, "capture begin");
    const tenon_status status = first.execute_bare(2, error);
    tenon_capture* made = nullptr;
    if (capture.end(stream, &made, ignored) == TENON_OK) capture.destroy(made);
    expect_refusal(status, error, {TENON_UNSUPPORTED}, "recording a plan in an epoch in which only another plan was executed");
    Sharing::expect(both.expected(0, after), first.execute(2), fmt::format("{}, plan 1 in epoch 2", layer.name));
  }
}

/// What does not fit together is refused, and nothing is left of it.
void refused(CaseContext& context) {
  const tenon_pack_table& block = pack_block(context);
  const tenon_plan_options options = default_options();
  const Layer layer = packed_layers(context, TENON_VALUE_PARAMETER)[0];
  const Net net = net_of(layer, 1, TENON_VALUE_PARAMETER);
  // Weights of another shape: more columns, or more filters.
  Layer wider = layer;
  const std::size_t columns = layer.op == TENON_OP_Conv ? 0 : 1;
  wider.w[columns] = wider.y[1] = 12;
  const Net other = net_of(wider, 1, TENON_VALUE_PARAMETER);
  const Packed packed(context, net);
  const std::optional<tenon_packing> form = described(context, net), other_form = described(context, other);
  if (other_form && std::string(form->key) == other_form->key) fail("weights of two shapes have one key");
  Net mistaken = other;
  mistaken.values[weights].packed = packed.handle;
  {
    const AbiGraph other_graph(mistaken);
    tenon_plan* plan = nullptr;
    ErrorText refusal;
    const tenon_status made = context.device.table().plan_create(context.device.handle(), &other_graph.graph, &options, &plan, refusal);
    if (made == TENON_OK) context.device.table().plan_destroy(plan);
    expect_refusal(made, refusal, {TENON_INVALID_ARGUMENT}, "plan_create with an operand packed in another form");
  }
  // All values are created, or none.
  const auto refuses = [&](const tenon_graph& graph, std::uint32_t value, tenon_status expected, const std::string& what) {
    const std::uint32_t values[] = {weights, value};
    tenon_packed* handles[] = {nullptr, nullptr};
    ErrorText refusal;
    const tenon_status made = block.create(context.device.handle(), &graph, &options, values, 2, handles, refusal);
    expect_refusal(made, refusal, {expected}, "pack create of " + what);
    if (handles[0] != nullptr || handles[1] != nullptr) fail("a failed pack create wrote its out-parameter");
  };
  AbiGraph abi_graph(net);
  const std::uint64_t live = stats_of(context).live_size_bytes;
  refuses(abi_graph.graph, 99, TENON_INVALID_ARGUMENT, "value 99 of 3");
  refuses(abi_graph.graph, 0, TENON_INVALID_ARGUMENT, "an input");
  abi_graph.graph.needs = TENON_NEEDS_TEST;
  refuses(abi_graph.graph, weights, TENON_UNSUPPORTED, "a value of a graph that needs what nobody knows");
  std::vector<tenon_packing> forms(net.values.size());
  ErrorText error;
  const tenon_status status =
      block.describe(context.device.handle(), &abi_graph.graph, &options, forms.data(), sizeof(tenon_packing), error);
  expect_refusal(status, error, {TENON_UNSUPPORTED}, "pack describe of a graph that needs what nobody knows");
  if (stats_of(context).live_size_bytes != live) fail("a failed pack create left memory");
  expect_sane(context);
}

}  // namespace

std::vector<Case> core_pack_cases() {
  return core_cases({
      {"pack/shared", shared_parameters},
      {"pack/constants", shared_constants},
      {"pack/epochs", epochs},
      {"pack/threads", threads},
      {"pack/recorded", recorded},
      {"pack/refused", refused},
  });
}

}  // namespace tenon::conformance
