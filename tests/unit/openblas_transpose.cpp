// SPDX-License-Identifier: Apache-2.0
// Transposes of the planes of an image to pixels, which interleave vectors where there are few planes.
#include <cstdint>
#include <vector>

#include "testing.h"

namespace tenon::test {

TEST_CASE("transposes: planes become pixels, for few and more channels, on any number of threads and for every instruction set") {
  for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64}) {
    for (const std::int64_t channels : {1, 2, 3, 4, 5}) {
      for (const std::int64_t pixels : {1, 63, 9001}) {
        std::vector<std::int32_t> x, expected;
        const auto element = [&](std::int64_t image, std::int64_t channel, std::int64_t pixel) {
          return static_cast<std::int32_t>((image * 97 + channel * 31 + pixel * 7) % 251);
        };
        for (std::int64_t image = 0; image < 2; ++image) {
          for (std::int64_t c = 0; c < channels; ++c) {
            for (std::int64_t i = 0; i < pixels; ++i) x.push_back(element(image, c, i));
          }
          for (std::int64_t i = 0; i < pixels; ++i) {
            for (std::int64_t c = 0; c < channels; ++c) expected.push_back(element(image, c, i));
          }
        }
        const Tensor planes = Tensor::of(x, {2, channels, pixels}).to(dtype);
        for (const char* isa : {"auto", "avx2", "sse4"}) {
          for (const std::uint32_t threads : {1u, 3u}) {
            CAPTURE(name_of(dtype));
            CAPTURE(channels);
            CAPTURE(pixels);
            CAPTURE(isa);
            CAPTURE(threads);
            Config config = test_config("openblas:0");
            config.backends.options["openblas"]["isa"] = isa;
            config.threads = threads;
            const Context context(config);
            Graph graph;
            graph.output("y", ops::transpose(graph.input("x", dtype, {2, channels, pixels}), {0, 2, 1}));
            const Tensor y = Program(context, graph).run({planes})[0].to_host();
            CHECK((y.to(DType::i32).to_vector<std::int32_t>() == expected));
          }
        }
      }
    }
  }
}

}  // namespace tenon::test
