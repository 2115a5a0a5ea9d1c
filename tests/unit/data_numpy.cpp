// SPDX-License-Identifier: Apache-2.0
// Pairs of arrays in NumPy's files: locations, and the resulting x and y.
#include <doctest/doctest.h>
#include <tenon/npy.h>

#include "data_testing.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

namespace {

const Tensor pixels = Tensor::of<std::uint8_t>({0, 51, 102, 153, 204, 255}, {3, 2});
const Tensor labels = Tensor::of<std::int32_t>({0, 4, 1}, {3});

}  // namespace

TEST_CASE_FIXTURE(InFolder, "numpy: the four arrays of Keras in one archive") {
  const std::string path = folder.file("mnist.npz");
  save_npz(path, {{"x_test", pixels.slice(0, 0, 2)}, {"x_train", pixels}, {"y_train", labels}, {"y_test", labels.slice(0, 0, 2)}});
  NumpyOptions options;
  options.scaling = Scaling::unit();
  const auto train = load_numpy(path, Split::train, options), test = load_numpy(path, Split::test, options);
  CHECK(train->size() == 3);
  CHECK(test->size() == 2);
  CHECK(train->name() == "mnist.npz train");
  CHECK(train->num_classes() == 5);
  CHECK(test->num_classes() == 5);  // those of the training part
  CHECK(gather(*train, {1}).x.data<float>()[1] == doctest::Approx(0.6));
  CHECK(gather(*train, {1}).y.data<std::int64_t>()[0] == 4);
}

TEST_CASE_FIXTURE(InFolder, "numpy: x and y without a split are the training part") {
  const std::string path = folder.file("a.npz");
  save_npz(path, {{"x", Tensor::of<double>({1, 2, 3}, {3, 1})}, {"y", Tensor::of<double>({0.5, 1.5, 2.5}, {3})}});
  const auto data = load_numpy(path, Split::train);
  CHECK(data->x_type().dtype == DType::f32);
  CHECK(data->y().str() == "f32(3,1)");
  CHECK_FALSE(data->num_classes().has_value());
  CHECK(gather(*data, {2}).y.data<float>()[0] == 2.5f);
  CHECK_ERROR(path + ": has no test part; expected x_test and y_test", load_numpy(path, Split::test));
}

TEST_CASE("numpy: folders of .npz and of .npy") {
  const TemporaryFolder archives, arrays, plain;
  save_npz(archives.file("train.npz"), {{"x", pixels}, {"y", labels}});
  save_npz(archives.file("test.npz"), {{"x", pixels.slice(0, 2, 3)}, {"y", labels.slice(0, 2, 3)}});
  CHECK(load_numpy(archives.path(), Split::train)->size() == 3);
  CHECK(load_numpy(archives.path(), Split::test)->size() == 1);
  for (const char* word : {"train", "test"}) {
    save_npy(arrays.file(std::string("x_") + word + ".npy"), pixels);
    save_npy(arrays.file(std::string("y_") + word + ".npy"), labels.reshape({3, 1}));  // as Keras stores those of CIFAR
  }
  CHECK(load_numpy(arrays.path(), Split::test)->y().str() == "i64(3)");
  save_npy(plain.file("x.npy"), labels.reshape({3, 1}));
  save_npy(plain.file("y.npy"), pixels);
  const auto tokens = load_numpy(plain.path(), Split::train);
  CHECK(tokens->x_type().dtype == DType::i32);
  CHECK(tokens->y_type().dtype == DType::u8);
}

TEST_CASE_FIXTURE(InFolder, "numpy: a label beyond any number of classes is an error with its place") {
  const std::string path = folder.file("a.npz");
  const auto refusal = [&](const Tensor& y) {
    save_npz(path, {{"x", pixels}, {"y", y}});
    return message_of([&] { (void)load_numpy(path, Split::train); });
  };
  const std::string rest = " of sample 1 is out of range, expected a class below 2147483648; targets that are not classes are floats";
  CHECK(refusal(Tensor::of<std::int64_t>({0, INT64_MAX, 1}, {3})) == path + ": label 9223372036854775807" + rest);
  CHECK(refusal(Tensor::of<std::uint64_t>({0, UINT64_MAX, 1}, {3})) == path + ": label 18446744073709551615" + rest);
}

TEST_CASE_FIXTURE(InFolder, "numpy: inputs and targets of other names, in archives and folders") {
  NumpyOptions options;
  options.input_arrays = {{"input_ids", "ids"}, {"image", "pixels"}};
  options.target_arrays = {{"start", "from"}, {"end", "to"}};
  const Tensor ids = Tensor::of<std::int32_t>({1, 2, 3}, {3}), scores = Tensor::of<double>({0.5, 1, 2}, {3});
  const std::string path = folder.file("a.npz");
  save_npz(path, {{"ids_train", ids},
                  {"pixels_train", pixels},
                  {"from_train", labels.reshape({3, 1})},
                  {"to_train", scores},
                  {"ids_test", ids.slice(0, 0, 1)},
                  {"pixels_test", pixels.slice(0, 0, 1)},
                  {"from_test", labels.slice(0, 0, 1)},
                  {"to_test", scores.slice(0, 0, 1)}});
  const auto train = load_numpy(path, Split::train, options);
  CHECK(load_numpy(path, Split::test, options)->size() == 1);
  REQUIRE(train->inputs().size() == 2);
  CHECK(train->inputs()[0].name == "input_ids");
  CHECK(train->inputs()[0].dtype == DType::i32);
  CHECK(train->inputs()[1].dtype == DType::u8);  // several inputs are not scaled
  CHECK(train->target_arrays()[0].tensor.str() == "i64(3)");
  CHECK(train->target_arrays()[1].tensor.str() == "f32(3,1)");
  CHECK_FALSE(train->num_classes().has_value());

  for (const auto& [array, tensor] : {std::pair{"ids", ids}, {"pixels", pixels}, {"from", labels}, {"to", scores}})
    save_npy(folder.file(std::string(array) + "_train.npy"), tensor);
  CHECK(load_numpy(folder.path(), Split::train, options)->size() == 3);
  CHECK_ERROR(folder.path() + ": has no test part; expected ids_test and from_test", load_numpy(folder.path(), Split::test, options));

  options.input_arrays[1].second = "pixel";
  CHECK_ERROR_CONTAINS("expected an array 'pixel_train', got ids_train", load_numpy(path, Split::train, options));
  options.input_arrays = {{"input_ids", "id"}};
  CHECK_ERROR_CONTAINS("expected an array 'id_train', got ids_train", load_numpy(path, Split::train, options));
  CHECK_ERROR(
      folder.path() + ": expected train.npz, id_train.npy or id.npy, got none of them; for an archive of another name, give its path",
      load_numpy(folder.path(), Split::train, options));
  save_npz(path, {{"ids", ids}, {"pixels", pixels.slice(0, 0, 2)}, {"from", labels}, {"to", scores}});
  options.input_arrays = {{"input_ids", "ids"}, {"image", "pixels"}};
  CHECK_ERROR(path + ": expected as many inputs as samples, got input_ids i32(3) and image u8(2,2)",
              load_numpy(path, Split::train, options));

  // One input and one target of other names are as x and y.
  options.input_arrays = {{"a", "pixels"}};
  options.target_arrays = {{"b", "from"}};
  save_npz(path, {{"pixels", pixels}, {"from", labels}});
  const auto one = load_numpy(path, Split::train, options);
  CHECK(one->x_type().dtype == DType::f32);
  CHECK(one->x_type().name == "a");
  CHECK(one->num_classes() == 5);
}

TEST_CASE_FIXTURE(InFolder, "numpy: errors are reported") {
  const std::string path = folder.file("a.npz");
  CHECK_ERROR(folder.path() + ": expected train.npz, x_train.npy or x.npy, got none of them; for an archive of another name, give its path",
              load_numpy(folder.path(), Split::train));
  save_npz(path, {{"a", pixels}, {"b", labels}});
  CHECK_ERROR(path + ": expected an array 'x_train', got a, b", load_numpy(path, Split::train));
  save_npz(path, {{"x", pixels}, {"y", labels.slice(0, 0, 2)}});
  CHECK_ERROR(path + ": expected as many targets as samples, got x u8(3,2) and y i32(2)", load_numpy(path, Split::train));
  save_npz(path, {{"x", pixels}, {"y", Tensor::of<std::int32_t>({0, -4, 1}, {3})}});
  CHECK_ERROR("a.npz train: label -4 of sample 1 is out of range, expected 0 to 1; num_classes sets the range",
              load_numpy(path, Split::train));
}
