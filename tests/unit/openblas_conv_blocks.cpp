// SPDX-License-Identifier: Apache-2.0
// The blocks of mobile nets: a depthwise convolution between 1x1 convolutions, and squeeze-excite. In one kernel or fused they have the
// bits of separate kernels, with any number of threads and any instruction set.
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

Value clip6(Value x) {
  return ops::clip(x, 0, 6);
}

/// activation(1x1), activation(depthwise), 1x1. More than 512 KiB for each of three threads are between them, unless the label says so; in
/// bf16 images are twice as high for that.
struct Block {
  const char* label;
  std::int64_t images, in, height, width, channels, out;  ///< in = 0: no 1x1 before; out = 0: none after
  std::int64_t kernel, stride = 1, pad = 0;
  bool has_residual = false;
  Value (*activation)(Value) = clip6;

  bool is_small() const { return height < 20; }
  Shape x(DType dtype) const { return {images, in == 0 ? channels : in, dtype == DType::bf16 && !is_small() ? 2 * height : height, width}; }
};

const Block blocks[] = {
    {"3x3, lines of an odd length", 1, 16, 70, 67, 96, 24, 3, 1, 1},
    {"3x3 with strides, an odd number of lines", 1, 20, 75, 71, 99, 40, 3, 2, 1},
    {"5x5, with a residual", 1, 24, 66, 68, 96, 24, 5, 1, 2, true, ops::relu},
    {"5x5 with strides, an activation that the tiles leave to another pass", 1, 24, 79, 65, 88, 33, 5, 2, 2, false, ops::silu},
    {"several images, more than threads", 4, 30, 35, 33, 100, 30, 3, 1, 1, true},
    {"several images, no padding", 3, 16, 41, 40, 96, 24, 3, 2, 0},
    {"padding before the first line only partly read", 1, 12, 96, 40, 112, 20, 5, 2, 4},
    {"nothing expanded", 1, 0, 113, 109, 40, 16, 3, 1, 1, false, ops::relu},
    {"nothing projected", 2, 16, 70, 67, 64, 0, 3, 2, 1, false, ops::silu},
    {"too small for one kernel", 1, 16, 9, 8, 40, 24, 3, 1, 1},
};

struct Result {
  std::vector<std::uint64_t> bits;  ///< of all results as f64; every NaN the same
  std::uint32_t kernels = 0;
};

Config config_of(std::uint32_t threads, const std::string& isa, Fusion fusion = Fusion::full) {
  Config config = test_config("openblas:0");
  config.threads = threads;
  config.fusion = fusion;
  config.backends.options["openblas"]["isa"] = isa;
  return config;
}

/// Numbers with a NaN and infinities among them.
std::vector<float> unusual_numbers(const Shape& shape, std::uint32_t seed) {
  std::vector<float> list = numbers(shape, seed);
  list[list.size() / 3] = std::numeric_limits<float>::quiet_NaN();
  list[list.size() / 2] = std::numeric_limits<float>::infinity();
  list[list.size() - 1] = -std::numeric_limits<float>::infinity();
  return list;
}

void append_bits(const Tensor& tensor, std::vector<std::uint64_t>& out_bits) {
  const Tensor wide = tensor.to_host().to(DType::f64);
  for (const double x : wide.to_vector<double>()) {
    out_bits.push_back(std::bit_cast<std::uint64_t>(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x));
  }
}

/// The instruction sets of which each dtype has code of its own; with reduced sizes the best one, and not of f64.
bool is_tested(DType dtype, const std::string& isa) {
  if (small_sizes()) return isa == "auto" && dtype != DType::f64;
  if (isa == "auto") return true;
  return dtype != DType::f64 && isa != (dtype == DType::f32 ? "avx512" : "avx2");
}

/// The numbers of threads of which a test compares results; with reduced sizes the last.
std::vector<std::uint32_t> thread_counts(std::initializer_list<std::uint32_t> counts) {
  return small_sizes() ? std::vector<std::uint32_t>{*(counts.end() - 1)} : std::vector<std::uint32_t>(counts);
}

ops::ConvOptions depthwise_options(std::int64_t channels, std::int64_t stride, std::int64_t pad) {
  ops::ConvOptions options;
  options.strides = {stride, stride};
  options.padding = {{pad, pad}, {pad, pad}};
  options.groups = channels;
  return options;
}

/// `apart`: what is between the convolutions is a result too, so that each is a kernel of its own.
Result run(const Block& b, DType dtype, std::uint32_t threads, const std::string& isa, bool apart, bool packed = true) {
  const Context context(config_of(threads, isa));
  Graph graph;
  const Shape shape = b.x(dtype);
  std::vector<Tensor> inputs{Tensor::of(unusual_numbers(shape, 1), shape).to(dtype)};
  const Value x = graph.input("x", dtype, shape);
  const auto weights = [&](const Shape& of, std::uint32_t seed) {
    const Tensor data = Tensor::of(numbers(of, seed), of).to(dtype);
    if (packed) return graph.constant(data);
    inputs.push_back(data);
    return graph.input("w" + std::to_string(seed), dtype, of);
  };
  const auto result = [&](const char* name, Value y) {
    if (apart) graph.output(name, y);
    return y;
  };
  Value y = x;
  if (b.in != 0) y = result("expanded", b.activation(ops::conv(y, weights({b.channels, b.in, 1, 1}, 2), weights({b.channels}, 3))));
  const Value w = weights({b.channels, 1, b.kernel, b.kernel}, 4);
  y = b.activation(ops::conv(y, w, weights({b.channels}, 5), depthwise_options(b.channels, b.stride, b.pad)));
  if (b.out != 0) {
    y = ops::conv(result("convolved", y), weights({b.out, b.channels, 1, 1}, 6), weights({b.out}, 7));
    if (b.has_residual) y = y + x;
  }
  graph.output("y", y);
  Program program(context, graph);
  Result results;
  append_bits(program.run(inputs).back(), results.bits);
  results.kernels = program.placement().kernels;
  return results;
}

}  // namespace

TEST_CASE("convolutions of a block: one kernel has the bits of separate ones, on any number of threads") {
  for (const Block& b : blocks) {
    const std::uint32_t convolutions = 1 + (b.in != 0) + (b.out != 0);
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      for (const char* isa : {"auto", "avx512", "avx2", "sse4"}) {
        if (!is_tested(dtype, isa)) continue;
        CAPTURE(std::string(b.label));
        CAPTURE(std::string(name_of(dtype)));
        CAPTURE(std::string(isa));
        const Result apart = run(b, dtype, 2, isa, true), together = run(b, dtype, 1, isa, false);
        CHECK(together.bits == apart.bits);
        if (dtype == DType::f32)
          CHECK(together.kernels == apart.kernels - (b.is_small() ? 1 : 2) * (convolutions - 1));  // and transposes of results
        for (const std::uint32_t threads : thread_counts({2, 3})) {
          CAPTURE(threads);
          const Result divided = run(b, dtype, threads, isa, false);
          CHECK(divided.bits == apart.bits);
          if (threads == 2) CHECK(divided.kernels == together.kernels);  // bands of a third of an image are too short for some
        }
      }
      if (is_tested(dtype, "auto")) CHECK(run(b, dtype, 2, "auto", false, false).bits == run(b, dtype, 2, "auto", true, false).bits);
    }
  }
}

TEST_CASE("convolutions of a block: what is between them takes no more memory than the parts that stay in the cache") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool expands : {true, false}) {
      CAPTURE(std::string(name_of(dtype)));
      CAPTURE(expands);
      const Context context(config_of(2, "auto"));
      Graph graph;
      const Shape shape{4, expands ? 16 : 96, 112, 112};
      const auto weights = [&](const Shape& of, std::uint32_t seed) { return graph.constant(Tensor::of(numbers(of, seed), of).to(dtype)); };
      Value y = graph.input("x", dtype, shape);
      if (expands) y = clip6(ops::conv(y, weights({96, 16, 1, 1}, 2)));
      y = clip6(ops::conv(y, weights({96, 1, 3, 3}, 3), {}, depthwise_options(96, 2, 1)));
      graph.output("y", ops::conv(y, weights({24, 96, 1, 1}, 4)));
      const Program program(context, graph);
      // The image and the result with their channels last, 640 KiB for each thread, and some scratch memory.
      const auto size = static_cast<std::uint64_t>(size_of(dtype));
      const std::uint64_t images = (shape.count() + Shape{4, 24, 56, 56}.count()) * size;
      CHECK(program.memory()[0].workspace_size_bytes <= images + 2 * 640 * 1024 + 256 * 1024);
    }
  }
}

TEST_CASE("a convolution computes the MaxPool of its result with the bits of both kernels") {
  const struct {
    const char* label;
    std::int64_t images, channels, height, width, filters, kernel, pool, pool_pad;
    std::uint32_t kernels;  ///< of both, in f32
    bool is_plain = false;  ///< neither a bias nor relu, and weights that the call packs
  } nets[] = {
      {"tiles of 4x4", 2, 40, 24, 28, 48, 3, 2, 0, 1},
      {"odd sizes, whose last lines no window has", 1, 35, 27, 29, 37, 3, 2, 0, 1},
      {"tiles of 2x2 by a kernel of 5x5", 1, 24, 8, 4, 40, 5, 2, 0, 1},
      {"tiles of 3x3 by a kernel of 5x5", 2, 24, 18, 15, 40, 5, 2, 0, 2},
      {"one line of windows, tiles of 2x2", 1, 64, 2, 40, 64, 3, 2, 0, 1},
      {"weights that threads share", 1, 192, 23, 28, 200, 3, 2, 0, 1},
      {"negative results, tiles of 4x4", 2, 40, 24, 28, 48, 3, 2, 0, 1, true},
      {"windows that overlap", 1, 40, 24, 28, 48, 3, 3, 0, 2},
      {"padded windows", 1, 40, 24, 28, 48, 3, 2, 1, 2},
      {"another algorithm", 1, 40, 24, 28, 48, 1, 2, 0, 2},
  };
  for (const auto& n : nets) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      for (const char* isa : {"auto", "avx512", "avx2", "sse4"}) {
        if (!is_tested(dtype, isa)) continue;
        CAPTURE(std::string(n.label));
        CAPTURE(std::string(name_of(dtype)));
        CAPTURE(std::string(isa));
        const auto results = [&](std::uint32_t threads, bool apart, bool finite) {
          const Context context(config_of(threads, isa));
          Graph graph;
          const Shape shape{n.images, n.channels, n.height, n.width}, filters{n.filters, n.channels, n.kernel, n.kernel};
          const Tensor filter = Tensor::of(numbers(filters, 2), filters).to(dtype);
          const Value x = graph.input("x", dtype, shape), w = n.is_plain ? graph.input("w", dtype, filters) : graph.constant(filter);
          const Value bias = graph.constant(Tensor::of(numbers({n.filters}, 3), {n.filters}).to(dtype));
          ops::ConvOptions options;
          options.padding = {{n.kernel / 2, n.kernel / 2}, {n.kernel / 2, n.kernel / 2}};
          const Value y = n.is_plain ? ops::conv(x, w, {}, options) : ops::relu(ops::conv(x, w, bias, options));
          if (apart) graph.output("convolved", y);
          ops::WindowOptions window;
          window.strides = {2, 2};
          window.padding = {{n.pool_pad, n.pool_pad}, {n.pool_pad, n.pool_pad}};
          graph.output("y", ops::max_pool(y, {n.pool, n.pool}, window));
          Program program(context, graph);
          Result result;
          std::vector<Tensor> operands{Tensor::of(finite ? numbers(shape, 1) : unusual_numbers(shape, 1), shape).to(dtype)};
          if (n.is_plain) operands.push_back(filter);
          append_bits(program.run(operands).back(), result.bits);
          result.kernels = program.placement().kernels;
          return result;
        };
        for (const bool finite : {true, false}) {
          if (finite && small_sizes()) continue;
          const Result apart = results(2, true, finite);
          for (const std::uint32_t threads : thread_counts({1, 2, 3})) {
            CAPTURE(threads);
            const Result together = results(threads, false, finite);
            CHECK(together.bits == apart.bits);
            if (dtype == DType::f32) CHECK(together.kernels == apart.kernels - (3 - n.kernels));  // and the transpose of a result
          }
        }
      }
    }
  }
}

TEST_CASE("convolutions of a block: a result that overwrites an operand of one of them is not computed in one kernel") {
  // The new parameter depends on all of the old one: as the image, and as the biases of the first convolution.
  for (const bool as_bias : {false, true}) {
    CAPTURE(as_bias);
    const DType dtype = as_bias ? DType::f32 : DType::f64;
    const std::int64_t channels = as_bias ? 400 : 96;
    const Shape shape = as_bias ? Shape{1, 1, 20, 20} : Shape{1, 1, 400, 66}, image = as_bias ? Shape{1, 8, 20, 20} : shape;
    std::vector<std::vector<std::uint64_t>> results;
    for (const Fusion fusion : {Fusion::off, Fusion::full}) {
      for (const std::uint32_t threads : {1u, 2u, 5u}) {
        const Context context(config_of(threads, "auto", fusion));
        Graph graph;
        const auto weights = [&](const Shape& of, std::uint32_t seed) {
          return graph.constant(Tensor::of(numbers(of, seed), of).to(dtype));
        };
        const Value p = graph.parameter("p", dtype, shape);
        Value y = as_bias ? graph.input("x", dtype, image) : p;
        y = ops::relu(ops::conv(y, weights({channels, image[1], 1, 1}, 2), as_bias ? ops::reshape(p, {channels}) : Value()));
        y = ops::relu(ops::conv(y, weights({channels, 1, 3, 3}, 3), {}, depthwise_options(channels, 1, 1)));
        graph.update(p, ops::conv(y, weights({1, channels, 1, 1}, 4)));
        Program program(context, graph);
        program.parameters()->set("p", Tensor::of(numbers(shape, 9), shape).to(dtype));
        std::vector<Tensor> inputs;
        if (as_bias) inputs.push_back(Tensor::of(numbers(image, 5), image).to(dtype));
        program.run(inputs);
        append_bits(program.parameters()->get("p"), results.emplace_back());
        CHECK(results.back() == results.front());
      }
    }
  }
}

TEST_CASE("convolutions of a block: the same bits if a run has fewer threads than its program was made for") {
  for (const std::int64_t images : {1, 3, 8}) {
    if (small_sizes() && images == 8) continue;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      CAPTURE(images);
      const Shape shape{images, 16, 130, 70};
      std::vector<std::uint64_t> expected;
      for (const std::uint32_t planned : {1u, 3u, 6u}) {
        const Context context(config_of(planned, "auto"));
        Graph graph;
        const auto weights = [&](const Shape& of, std::uint32_t seed) {
          return graph.constant(Tensor::of(numbers(of, seed), of).to(dtype));
        };
        Value y = ops::relu(ops::conv(graph.input("x", dtype, shape), weights({96, 16, 1, 1}, 2)));
        y = ops::relu(ops::conv(y, weights({96, 1, 5, 5}, 3), {}, depthwise_options(96, 2, 2)));
        graph.output("y", ops::conv(y, weights({24, 96, 1, 1}, 4)));
        Program program(context, graph);
        const Tensor x = Tensor::of(numbers(shape, 5), shape).to(dtype);
        for (std::uint32_t threads = 1; threads <= planned; threads += 2) {
          RunOptions options;
          options.threads = threads;
          std::vector<std::uint64_t> bits;
          append_bits(program.run({x}, options)[0], bits);
          if (expected.empty()) expected = bits;
          CHECK(bits == expected);
        }
      }
    }
  }
}

namespace {

/// relu(depthwise) times its mean, and a 1x1 convolution of that.
struct Excited {
  const char* label;
  std::int64_t images, channels, height, width, out, kernel, stride = 1, pad = 0;
};

const Excited excited[] = {
    {"3x3", 1, 70, 31, 25, 40, 3, 1, 1},
    {"5x5 with strides, an odd size, several images", 3, 37, 30, 33, 19, 5, 2, 2},
    {"few rows: threads take channels", 2, 200, 4, 40, 64, 3, 1, 1},
    {"more segments than rows of a thread", 1, 48, 14, 14, 24, 3, 1, 1},
    {"weights that all threads share", 1, 1160, 7, 7, 320, 3, 1, 1},
    {"one pixel", 2, 33, 1, 1, 20, 3, 1, 1},
    {"rows that no cache holds at once", 1, 512, 60, 61, 20, 3, 1, 1},
};

Result run(const Excited& e, DType dtype, std::uint32_t threads, const std::string& isa, Fusion fusion, bool unusual) {
  const Context context(config_of(threads, isa, fusion));
  const Shape shape{e.images, e.channels, e.height, e.width};
  Graph graph;
  const Tensor data = Tensor::of(unusual ? unusual_numbers(shape, 1) : numbers(shape, 1), shape).to(dtype);
  const Value x = graph.input("x", dtype, shape);
  const auto weights = [&](const Shape& of, std::uint32_t seed) { return graph.constant(Tensor::of(numbers(of, seed), of).to(dtype)); };
  const Value w = weights({e.channels, 1, e.kernel, e.kernel}, 2);
  const Value y = ops::relu(ops::conv(x, w, {}, depthwise_options(e.channels, e.stride, e.pad)));
  const bool half = dtype == DType::bf16;
  Value mean = ops::reduce_mean(half ? ops::cast(y, DType::f32) : y, {2, 3}, true);
  graph.output("mean", mean);
  if (half) mean = ops::cast(mean, dtype);
  graph.output("z", ops::conv(ops::mul(y, mean), weights({e.out, e.channels, 1, 1}, 3)));
  Program program(context, graph);
  Result result;
  for (const Tensor& of : program.run({data})) append_bits(of, result.bits);
  result.kernels = program.placement().kernels;
  return result;
}

}  // namespace

TEST_CASE("squeeze-excite: means by the depthwise convolution, a scale by the next one have the bits of separate kernels") {
  for (const Excited& e : excited) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      for (const char* isa : {"auto", "avx512", "avx2", "sse4"}) {
        if (!is_tested(dtype, isa)) continue;
        for (const bool unusual : {false, true}) {
          if (!unusual && small_sizes()) continue;
          CAPTURE(std::string(e.label));
          CAPTURE(std::string(name_of(dtype)));
          CAPTURE(std::string(isa));
          CAPTURE(unusual);
          const Result apart = run(e, dtype, 2, isa, Fusion::off, unusual), fused = run(e, dtype, 2, isa, Fusion::full, unusual);
          CHECK(fused.kernels + (dtype == DType::f64 ? 2 : 3) <= apart.kernels);  // relu, product, and the mean
          CHECK(fused.bits == apart.bits);
          if (std::string(isa) != "auto") continue;
          for (const std::uint32_t threads : thread_counts({1, 5}))
            CHECK(run(e, dtype, threads, isa, Fusion::full, unusual).bits == fused.bits);
        }
      }
    }
  }
}

}  // namespace tenon::test
