// SPDX-License-Identifier: Apache-2.0
// Folders of images: formats, order and errors.
#include <doctest/doctest.h>
#include <tenon/npy.h>
#include <zlib.h>

#include <cstdio>  // jpeglib.h uses FILE without including it
#include <cstdlib>

#include <jpeglib.h>

#include "core/log.h"
#include "data/image_file.h"
#include "data_testing.h"
#include "rooted.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::string text_of(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}
std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8), static_cast<char>(value)};
}
std::string chunk(const std::string& type, const std::string& content) {
  const std::string both = type + content;
  const auto check = static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(both.data()), static_cast<uInt>(both.size())));
  return big_endian(static_cast<std::uint32_t>(content.size())) + both + big_endian(check);
}
/// Each of `rows` has the bytes of a line at a depth of 8 or 16 bits; `colour` is PNG's: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6
/// RGBA.
std::string png(std::uint32_t width, const std::vector<Bytes>& rows, char colour, char depth = 8, const std::string& between = "") {
  std::string lines;
  for (const Bytes& row : rows) lines += '\0' + text_of(row);
  const auto lines_size = static_cast<uLong>(lines.size());
  uLongf size = compressBound(lines_size);
  std::string packed(size, '\0');
  REQUIRE(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(lines.data()), lines_size) == Z_OK);
  packed.resize(size);
  const std::string header =
      big_endian(width) + big_endian(static_cast<std::uint32_t>(rows.size())) + depth + colour + std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + between + chunk("IDAT", packed) + chunk("IEND", "");
}

struct Pictures {
  TemporaryFolder folder;
  std::string write(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(folder.file(name)).parent_path());
    return folder.write(name, content);
  }
};

}  // namespace

TEST_CASE_FIXTURE(InFolder, "images: grey and coloured PNM, with comments in their headers") {
  const Tensor grey = data::read_image(folder.write("a.pgm", "P5\n# made by hand\n3 2 # wide\n255\n" + text_of({1, 2, 3, 4, 5, 255})));
  CHECK(grey.shape() == Shape{1, 2, 3});
  CHECK(values_of<std::uint8_t>(grey) == Bytes{1, 2, 3, 4, 5, 255});
  const Tensor coloured = data::read_image(folder.write("a.PPM", "P6 2 1 255\n" + text_of({1, 2, 3, 4, 5, 6})));
  CHECK(coloured.shape() == Shape{3, 1, 2});
  CHECK(values_of<std::uint8_t>(coloured) == Bytes{1, 4, 2, 5, 3, 6});
}

TEST_CASE_FIXTURE(InFolder, "images: PNG of every kind of colour") {
  const auto read = [&](const std::string& content) { return data::read_image(folder.write("a.png", content)); };
  CHECK(values_of<std::uint8_t>(read(png(3, {{0, 128, 255}, {1, 2, 3}}, 0))) == Bytes{0, 128, 255, 1, 2, 3});
  CHECK(values_of<std::uint8_t>(read(png(2, {{9, 0, 7, 255}}, 4))) == Bytes{9, 7});  // transparency does not change the colour
  const Tensor rgb = read(png(2, {{1, 2, 3, 4, 5, 6}}, 2));
  CHECK(rgb.shape() == Shape{3, 1, 2});
  CHECK(values_of<std::uint8_t>(rgb) == Bytes{1, 4, 2, 5, 3, 6});
  CHECK(values_of<std::uint8_t>(read(png(1, {{1, 2, 3, 0}}, 6))) == Bytes{1, 2, 3});
  const std::string palette = chunk("PLTE", text_of({10, 20, 30, 40, 50, 60}));
  CHECK(values_of<std::uint8_t>(read(png(3, {{0, 1, 0}}, 3, 8, palette))) == Bytes{10, 40, 10, 20, 50, 20, 30, 60, 30});
}

TEST_CASE_FIXTURE(InFolder, "images: damaged files are rejected by name") {
  const auto error = [&](const std::string& name, const std::string& content) {
    const std::string file = folder.write(name, content);
    const std::string text = message_of([&] { data::read_image(file); });
    CHECK(text.substr(0, file.size() + 2) == file + ": ");
    return text.substr(std::min(text.size(), file.size() + 2));
  };
  CHECK(error("a.pgm", "P2 1 1 255\n7\n") == "expected a binary PGM (P5) or PPM (P6), got another PNM format");
  CHECK(error("a.pgm", "P5 2 2 65535\n") == "expected values up to 255, got up to 65535");
  CHECK(error("a.pgm", "P5 2 2 255\nabc") == "expected 4 bytes of pixels for 2 x 2, got 3");
  CHECK(contains(error("a.pgm", "P5 2 0 255\n"), "sides of 1 to 65536"));
  CHECK(contains(error("a.pgm", "P5 99999999999999999999 1 255\n"), "sides of 1 to 65536"));
  CHECK(error("a.png", "no picture").find("cannot be read as PNG: ") == 0);
  const std::string whole = png(3, {{0, 128, 255}}, 0);
  CHECK(error("a.png", whole.substr(0, whole.size() - 20)).find("cannot be read as PNG: ") == 0);
  std::string promises = png(1, {{7}}, 0);
  promises.replace(8, 25, chunk("IHDR", big_endian(65000) + big_endian(65000) + std::string("\x08\0\0\0\0", 5)));
  CHECK(error("a.png", promises) == "65000 x 65000: expected at most 67108864 pixels of an image, got 4225000000; the environment's " +
                                        std::string("TENON_LIMIT_IMAGE_PIXELS raises this limit for files that you trust"));
  promises.replace(8, 25, chunk("IHDR", big_endian(8000) + big_endian(8000) + std::string("\x08\0\0\0\0", 5)));
  CHECK(error("a.png", promises).find("8000 x 8000 pixels do not fit its") == 0);
  CHECK(contains(error("a.pgm", "P5 65536 65536 255\n"), "65536 x 65536: expected at most 67108864 pixels"));
  save_npy(folder.file("a.npy"), Tensor::of<float>({1, 2}, {1, 2}));
  CHECK_ERROR_CONTAINS("got f32(1,2)", data::read_image(folder.file("a.npy")));
}

TEST_CASE_FIXTURE(Pictures, "image folder: classes are interleaved in the order of their names") {
  const auto picture = [](std::uint8_t value) { return "P5 1 1 255\n" + std::string(1, static_cast<char>(value)); };
  write("dog/1.pgm", picture(10));
  write("dog/2.pgm", picture(11));
  write("dog/3.pgm", picture(12));
  write("cat/b.png", png(1, {{2}}, 0));
  write("cat/a.pgm", picture(1));
  write("cat/notes.txt", "no picture");
  write("cat/.hidden.pgm", "no picture");
  const ImageFolderData read = load_image_folder(folder.path(), Split::train);
  CHECK(read.classes == std::vector<std::string>{"cat", "dog"});
  CHECK(values_of<std::uint8_t>(read.data->x()) == Bytes{1, 10, 2, 11, 12});
  CHECK(values_of<std::int64_t>(read.data->y()) == std::vector<std::int64_t>{0, 1, 0, 1, 1});
  CHECK(read.data->num_classes() == 2);
  CHECK(read.data->x_type().shape == Shape{1, 1, 1});
  CHECK(gather(*read.data, {3}).x.data<float>()[0] == doctest::Approx(11.0 / 255));
  CHECK_ERROR_CONTAINS("expected a folder 'test'", load_image_folder(folder.path(), Split::test));
}

TEST_CASE_FIXTURE(Pictures, "image folder: train and test are sibling folders with the same classes") {
  write("train/a/1.pgm", "P5 1 1 255\nx");
  write("train/b/1.pgm", "P5 1 1 255\ny");
  write("test/b/1.pgm", "P5 1 1 255\nz");
  const ImageFolderData train = load_image_folder(folder.path(), Split::train);
  ImageFolderOptions options;
  options.classes = train.classes;
  const ImageFolderData test = load_image_folder(folder.path(), Split::test, options);
  CHECK(values_of<std::int64_t>(test.data->y()) == std::vector<std::int64_t>{1});
  write("test/c/1.pgm", "P5 1 1 255\nz");
  CHECK_ERROR_CONTAINS("c: unknown class; expected one of the 2 given classes", load_image_folder(folder.path(), Split::test, options));
}

TEST_CASE_FIXTURE(Pictures, "image folder: images of different sizes and empty folders are rejected") {
  const std::string first = rooted(write("a/1.pgm", "P5 1 1 255\nx")), second = rooted(write("b/1.pgm", "P5 2 1 255\nxy"));
  CHECK_ERROR(second + ": expected the shape of the first image " + first +
                  ", (1,1,1), got (1,1,2); data: {image: {resize: [1, 1], channels: greyscale}} gives all images one shape",
              load_image_folder(folder.path(), Split::train));
  CHECK_ERROR_CONTAINS("expected a folder of .jpg, .jpeg, .png, .pgm, .ppm or .npy images per class, got none",
                       load_image_folder(folder.file("a"), Split::train));
  CHECK_ERROR_CONTAINS("folder not found", load_image_folder(folder.file("none"), Split::train));
}

namespace {

/// A JPEG of one colour per pixel block, which survives compression almost unchanged.
std::string jpeg(std::uint32_t width, std::uint32_t height, int channels, const Bytes& colour) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* written = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &written, &size);
  state.image_width = width;
  state.image_height = height;
  state.input_components = channels;
  state.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, 100, TRUE);
  jpeg_start_compress(&state, TRUE);
  Bytes row;
  for (std::uint32_t x = 0; x < width; ++x) row.insert(row.end(), colour.begin(), colour.end());
  JSAMPROW line = row.data();
  for (std::uint32_t y = 0; y < height; ++y) jpeg_write_scanlines(&state, &line, 1);
  jpeg_finish_compress(&state);
  jpeg_destroy_compress(&state);
  std::string content(reinterpret_cast<const char*>(written), size);
  std::free(written);
  return content;
}

Tensor image_of(std::int64_t channels, std::int64_t height, std::int64_t width, const Bytes& values) {
  return Tensor::of<std::uint8_t>(values, {channels, height, width});
}

}  // namespace

TEST_CASE_FIXTURE(InFolder, "images: JPEG, grey and coloured, and damaged ones by name") {
  const Tensor grey = data::read_image(folder.write("a.jpg", jpeg(3, 2, 1, {77})));
  CHECK(grey.shape() == Shape{1, 2, 3});
  CHECK(values_of<std::uint8_t>(grey) == Bytes(6, 77));
  const Tensor rgb = data::read_image(folder.write("a.JPEG", jpeg(2, 1, 3, {200, 100, 50})));
  CHECK(rgb.shape() == Shape{3, 1, 2});
  const Bytes expected = {200, 200, 100, 100, 50, 50}, got = values_of<std::uint8_t>(rgb);
  for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(got[i] - expected[i]) <= 2);  // conversion to YCbCr rounds

  const std::string whole = jpeg(64, 64, 3, {200, 100, 50});
  const auto error = [&](const std::string& content) { return message_of([&] { data::read_image(folder.write("b.jpg", content)); }); };
  CHECK(contains(error("no picture"), "b.jpg: cannot be read as JPEG: Not a JPEG file"));
  CHECK(contains(error(""), "b.jpg: cannot be read as JPEG: "));
  CHECK(contains(error(whole.substr(0, whole.size() / 2)), "b.jpg: cannot be read as JPEG: Premature end of JPEG file"));
  std::string promises = jpeg(8, 8, 1, {0});
  const std::size_t size_of_frame = promises.find("\xff\xc0") + 5;  // height and width of the frame header, big-endian
  for (std::size_t i = 0; i < 4; ++i) promises[size_of_frame + i] = '\xf0';
  CHECK(contains(error(promises), "b.jpg: 61680 x 61680: expected at most 67108864 pixels of an image"));
  CHECK_ERROR("a.tiff: expected an image, .jpg, .jpeg, .png, .pgm, .ppm or .npy", data::read_image("a.tiff"));
}

TEST_CASE("images: resizing weighs all pixels that a smaller one covers, and interpolates larger ones") {
  const auto resized = [](std::int64_t height, std::int64_t width, const Bytes& values, const std::vector<std::int64_t>& to) {
    return transform_image(image_of(1, height, width, values), {.resize = to});
  };
  // weights 3, 3, 1 and 1, 3, 3 of 7: a triangle of two pixels of the result around each centre
  CHECK(values_of<std::uint8_t>(resized(1, 4, {0, 70, 140, 210}, {1, 2})) == Bytes{50, 160});
  CHECK(values_of<std::uint8_t>(resized(4, 1, {0, 70, 140, 210}, {2, 1})) == Bytes{50, 160});
  CHECK(values_of<std::uint8_t>(resized(1, 2, {0, 100}, {1, 4})) == Bytes{0, 25, 75, 100});
  CHECK(values_of<std::uint8_t>(resized(3, 2, Bytes(6, 255), {7, 5})) == Bytes(35, 255));
  CHECK(resized(10, 20, Bytes(200), {5}).shape() == Shape{1, 5, 10});  // the shorter side
  CHECK(resized(20, 10, Bytes(200), {5}).shape() == Shape{1, 10, 5});
}

TEST_CASE("images: the centre is cut out, and channels are converted") {
  const Tensor image = image_of(1, 3, 4, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(values_of<std::uint8_t>(transform_image(image, {.crop = {1, 2}})) == Bytes{5, 6});
  CHECK_ERROR("expected at least 4 x 4 pixels (height x width) to crop, got 3 x 4; resize the image to a larger size first",
              transform_image(image, {.crop = {4}}));
  CHECK(values_of<std::uint8_t>(transform_image(image_of(1, 1, 2, {7, 9}), {.channels = 3})) == Bytes{7, 9, 7, 9, 7, 9});
  CHECK(values_of<std::uint8_t>(transform_image(image_of(3, 1, 2, {255, 0, 0, 255, 0, 0}), {.channels = 1})) == Bytes{76, 150});
  CHECK_ERROR("expected an image of 1 or 3 channels for 3 channels, got 2", transform_image(image_of(2, 1, 1, {1, 2}), {.channels = 3}));
  CHECK_ERROR_CONTAINS("expected an image u8(channels, height, width), got f32(2,2)",
                       transform_image(Tensor::zeros(DType::f32, {2, 2}), {}));
}

TEST_CASE_FIXTURE(Pictures, "image folder: files of other kinds are left out with one warning, and images get one size") {
  write("a/1.pgm", "P5 2 2 255\nxxxx");
  write("a/2.jpg", jpeg(4, 4, 3, {9, 9, 9}));
  for (const char* name : {"a/1.gif", "a/2.txt", "a/3.webp", "a/4.bmp", "a/.hidden"}) write(name, "?");
  const std::string log_file = folder.file("log");
  const std::uint32_t level = log::level();
  log::set_level(TENON_LOG_WARNING);
  log::set_file(log_file);
  ImageFolderOptions options;
  options.image = {.resize = {2, 2}, .channels = 1};
  const ImageFolderData read = load_image_folder(folder.path(), Split::train, options);
  log::set_file("");
  log::set_level(level);
  CHECK(read.data->size() == 2);
  CHECK(read.data->x_type().shape == Shape{1, 2, 2});
  CHECK(folder.read("log") ==
        "tenon: warning: " + folder.file("a") +
            ": 4 of 6 files are left out, expected .jpg, .jpeg, .png, .pgm, .ppm or .npy: 1.gif, 2.txt, 3.webp, ...\n");
}
