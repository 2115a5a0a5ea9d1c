// SPDX-License-Identifier: Apache-2.0
// Weights in files: pairing of names, transposition, what is missing or left over, comparison.
#include <cmath>

#include <tenon/npy.h>
#include <tenon/weights.h>

#include "temporary_folder.h"
#include "train_testing.h"

namespace tenon::test {
namespace {

struct Weights : InFolder {
  Context context{test_config()};
  /// (4) -> 3 -> 2, with names dense and dense_1.
  Model model(std::uint64_t seed = 0) {
    Config config = test_config();
    config.seed = seed;
    Model model = compiled(Context(config), {layers::Dense{3}, layers::Dense{2}}, {});
    model.build({4});
    return model;
  }
};

TEST_CASE_FIXTURE(Weights, "weights: what is exported is imported to the same bits, from every kind of file") {
  Model from = model(1);
  from.save(folder.path(), "c");
  export_weights(from, {folder.file("w.npz")});
  export_weights(from, {folder.file("w.safetensors")});
  for (const std::string& file : {folder.file("w.npz"), folder.file("w.safetensors"), folder.file("c.yaml"), folder.path()}) {
    Model to = model(2);
    CHECK(weights(to) != weights(from));
    const WeightsReport report = import_weights(to, {file});
    CHECK(report.matched.size() == 4);
    CHECK(report.str() == file + ": 4 of 4 parameters");
    CHECK(weights(to) == weights(from));
  }
  CHECK_ERROR_CONTAINS("expected a file name that ends in .safetensors or .npz", export_weights(from, {folder.file("w.h5")}));
  Model unbuilt({layers::Dense{3}});
  CHECK_ERROR_CONTAINS("the shape of a sample is not known yet", import_weights(unbuilt, {folder.file("w.npz")}));
}

TEST_CASE_FIXTURE(Weights, "weights: a name map pairs PyTorch's names and transposes its matrices") {
  Model from = model(1), to = model(2);
  const auto of = [&](const char* name) { return from.parameters().get(name).to_host(); };
  save_npz(folder.file("torch.npz"), {{"fc.0.weight", of("dense/kernel").transpose(0, 1).contiguous()},
                                      {"fc.0.bias", of("dense/bias")},
                                      {"head.weight", of("dense_1/kernel").transpose(0, 1).contiguous()},
                                      {"head.bias", of("dense_1/bias").reshape({2, 1})},
                                      {"bn.num_batches_tracked", Tensor::of<std::int64_t>({7}, {1})}});
  const std::string map = folder.write("map",
                                       "# ours: theirs\n"
                                       "dense_1/kernel: head.weight transposed\n"
                                       "dense_1/*: head.*\n"
                                       "dense/kernel: fc.0.weight   transposed\n"
                                       "dense/*: fc.0.*\n"
                                       "-: *.num_batches_tracked\n");
  CHECK(import_weights(to, {folder.file("torch.npz"), map}).left_over.empty());
  CHECK(weights(to) == weights(from));

  const std::string by_option =
      folder.write("names", "dense_1/kernel: head.weight\ndense_1/bias: head.bias\ndense/kernel: fc.0.weight\ndense/*: fc.0.*\n-: bn.*\n");
  Model again = model(3);
  import_weights(again, {folder.file("torch.npz"), by_option, true});
  CHECK(weights(again) == weights(from));
  CHECK_ERROR_CONTAINS("expected (4,3), got (3,4); it fits if transposed: set transpose",
                       import_weights(again, {folder.file("torch.npz"), by_option}));
  export_weights(from, {folder.file("back.npz"), map});
  CHECK(load_npz(folder.file("back.npz"), "fc.0.weight").shape() == Shape{3, 4});

  CHECK_ERROR(map + ":1: expected `ours: theirs`, with `transposed` behind it if the axes are the other way round, got 'fc'",
              load_name_map(folder.write("map", "fc\n")));
  CHECK_ERROR(map + ":2: expected as many '*' in 'b' as in 'a*'", load_name_map(folder.write("map", "\na*: b\n")));
}

TEST_CASE_FIXTURE(Weights, "weights: what is missing or left over is an error, or only reported") {
  Model from = model(1), to = model(2);
  const auto before = weights(to);
  save_npz(folder.file("part.npz"),
           {{"dense/kernel", from.parameters().get("dense/kernel").to_host()}, {"head", Tensor::of<float>({1}, {1})}});
  const std::string report =
      folder.file("part.npz") + ": 1 of 4 parameters; missing: dense/bias, dense_1/bias, dense_1/kernel; left over: head";
  CHECK_ERROR_CONTAINS(report + "; pair them by a name map", import_weights(to, {folder.file("part.npz")}));
  CHECK(weights(to) == before);
  CHECK(import_weights(to, {.file = folder.file("part.npz"), .strict = false}).str() == report);
  CHECK(weights(to).at("dense/kernel") == weights(from).at("dense/kernel"));
  CHECK(weights(to).at("dense_1/kernel") == before.at("dense_1/kernel"));
  save_npz(folder.file("none.npz"), {{"head", Tensor::of<float>({1}, {1})}});
  CHECK_ERROR_CONTAINS("0 of 4 parameters", import_weights(to, {.file = folder.file("none.npz"), .strict = false}));
  save_npz(folder.file("shape.npz"), {{"dense/bias", Tensor::of<float>({1, 2}, {2})}});
  CHECK_ERROR_CONTAINS("tensor 'dense/bias' for parameter 'dense/bias': expected (3), got (2)",
                       import_weights(to, {.file = folder.file("shape.npz"), .strict = false}));
  save_npz(folder.file("wide.npz"), {{"dense/bias", Tensor::of<double>({1, 2, 3}, {3})}});
  import_weights(to, {.file = folder.file("wide.npz"), .strict = false});
  CHECK(weights(to).at("dense/bias") == std::vector<float>{1, 2, 3});
}

TEST_CASE_FIXTURE(Weights, "weights: a comparison names each difference") {
  save_npz(folder.file("a.npz"),
           {{"x", Tensor::of<float>({1, 2, NAN}, {3})}, {"y", Tensor::of<float>({1, 2}, {2})}, {"z", Tensor::of<float>({1}, {1})}});
  save_npz(folder.file("b.npz"),
           {{"x", Tensor::of<float>({1, 2.25, NAN}, {3})}, {"y", Tensor::of<float>({1, 2}, {1, 2})}, {"w", Tensor::of<float>({1}, {1})}});
  std::string text;
  for (const WeightDifference& d : compare_weights(folder.file("a.npz"), folder.file("b.npz"))) text += d.name + " " + d.text + "\n";
  CHECK(text == "x by at most 0.25, at element 1\ny f32(2) and f32(1,2)\nz only in " + folder.file("a.npz") + "\nw only in " +
                    folder.file("b.npz") + "\n");
  CHECK(compare_weights(folder.file("a.npz"), folder.file("a.npz")).empty());
  CHECK(compare_weights(folder.file("a.npz"), folder.file("b.npz"), 0.5).size() == 3);
}

}  // namespace
}  // namespace tenon::test
