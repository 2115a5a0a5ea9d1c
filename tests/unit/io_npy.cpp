// SPDX-License-Identifier: Apache-2.0
// .npy and .npz: files by NumPy, our files read by NumPy, and damaged files.
#include <doctest/doctest.h>
#include <tenon/npy.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// A file of version `major` with this header text, padded as by NumPy.
std::string npy(const std::string& header, const std::string& data, char major = 1) {
  std::string text = header;
  const std::size_t prefix = major == 1 ? 10 : 12;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';
  std::string file = "\x93NUMPY";
  file += {major, '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  if (major > 1) file += {'\0', '\0'};
  return file + text + data;
}

std::string dict(const std::string& descr, const std::string& shape, const char* fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

/// The error of reading `content` as a .npy file, without the leading folder.
std::string refusal_of(const std::string& content) {
  return message_of_file("a.npy", content, load_npy);
}

std::string npz_refusal_of(const std::string& content) {
  return message_of_file("a.npz", content, [](const std::string& path) { return load_npz(path); });
}

bool starts_with(const std::string& text, const std::string& head) {
  return text.rfind(head, 0) == 0;
}

bool has_numpy() {
  static const bool there = std::system("/usr/bin/python3 -c 'import numpy' >/dev/null 2>&1") == 0;
  return there;
}

/// Runs Python in the folder; its assertions must hold.
bool python(const TemporaryFolder& folder, const std::string& script) {
  folder.write("script.py", "import numpy as np\n" + script);
  return std::system(("cd '" + folder.path() + "' && /usr/bin/python3 script.py").c_str()) == 0;
}

const std::vector<DType> dtypes = {DType::boolean, DType::i8,  DType::i16, DType::i32, DType::i64, DType::u8,  DType::u16,
                                   DType::u32,     DType::u64, DType::f16, DType::f32, DType::f64, DType::c64, DType::c128};

/// Only bytes 0 and 1, which are valid in every dtype.
Tensor patterned(DType dtype, const Shape& shape) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  auto* bytes = static_cast<unsigned char*>(tensor.raw());
  for (std::int64_t i = 0; i < tensor.size_bytes(); ++i) bytes[i] = static_cast<unsigned char>((i * 7 + i / 3) % 2);
  return tensor;
}

/// An archive with one changed byte at the first or last occurrence of a marker.
std::string changed(std::string bytes, const std::string& marker, std::size_t offset, char value) {
  const std::size_t at = bytes.find(marker);
  REQUIRE(at != std::string::npos);
  bytes[at + offset] = value;
  return bytes;
}

const std::string directory_magic = "PK\x01\x02";

}  // namespace

TEST_CASE_FIXTURE(InFolder, "npy: save_npy writes the bytes of numpy.save(arange(3, dtype=int16))") {
  save_npy(folder.file("a.npy"), Tensor::of<std::int16_t>({0, 1, 2}, {3}));
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
  expected.resize(127, ' ');
  expected += std::string("\n\x00\x00\x01\x00\x02\x00", 7);
  CHECK(folder.read("a.npy") == expected);
}

TEST_CASE_FIXTURE(InFolder, "npy: every dtype round-trips bit for bit, also scalars and empty arrays") {
  for (const DType dtype : dtypes) {
    CAPTURE(name_of(dtype));
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{0, 3}, Shape{2, 3, 4}, Shape{1, 1, 1, 1, 1, 1, 2, 2}}) {
      const Tensor tensor = patterned(dtype, shape);
      save_npy(folder.file("a.npy"), tensor);
      CHECK(equal(load_npy(folder.file("a.npy")), tensor));
    }
  }
}

TEST_CASE_FIXTURE(InFolder, "npy: a strided tensor is written dense") {
  const Tensor tensor = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  save_npy(folder.file("a.npy"), tensor.transpose({1, 0}));
  CHECK(load_npy(folder.file("a.npy")).to_vector<float>() == std::vector<float>{1, 4, 2, 5, 3, 6});
}

TEST_CASE_FIXTURE(InFolder, "npy: versions 1 to 3, Fortran order, big-endian, and headers written by others") {
  const std::string bytes("\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x06\x00", 12);
  const auto load = [&](const std::string& content) { return load_npy(folder.write("a.npy", content)); };
  for (const char major : {'\1', '\2', '\3'}) {
    const Tensor tensor = load(npy(dict("<i2", "(2, 3)"), bytes, major));
    CHECK(tensor.str() == "i16(2,3)");
    CHECK(tensor.to_vector<std::int16_t>() == std::vector<std::int16_t>{1, 2, 3, 4, 5, 6});
  }
  const Tensor fortran = load(npy(dict("<i2", "(2, 3)", "True"), bytes));
  CHECK(fortran.str() == "i16(2,3)");
  CHECK(fortran.is_dense());
  CHECK(fortran.to_vector<std::int16_t>() == std::vector<std::int16_t>{1, 3, 5, 2, 4, 6});
  CHECK(load(npy(dict(">i2", "(6,)"), bytes)).to_vector<std::int16_t>() ==
        std::vector<std::int16_t>{0x100, 0x200, 0x300, 0x400, 0x500, 0x600});
  const std::string one("\x3f\x80\x00\x00\xc0\x00\x00\x00", 8);  // 1 - 2i, most significant byte first
  const Tensor complex = load(npy(dict(">c8", "()"), one));
  CHECK(complex.dtype() == DType::c64);
  float parts[2];
  std::memcpy(parts, complex.raw(), sizeof parts);
  CHECK(parts[0] == 1.0f);
  CHECK(parts[1] == -2.0f);
  CHECK(load(npy("{\"shape\":(2L,3L),\"fortran_order\":False,\"descr\":\"=i2\"}", bytes)).str() == "i16(2,3)");
}

TEST_CASE("npy: errors of a file are reported") {
  const std::string two("\x01\x00\x02\x00", 4);
  CHECK(refusal_of("hello, this is no array") == "not a .npy file: expected it to start with \\x93NUMPY and a version");
  CHECK(refusal_of("") == "not a .npy file: expected it to start with \\x93NUMPY and a version");
  CHECK(refusal_of(npy(dict("<i2", "(2,)"), two, 4)) == "expected .npy version 1.0, 2.0 or 3.0, got 4.0");
  CHECK(refusal_of(npy(dict("<i2", "(3,)"), two)) == "truncated: i16(3) expects 6 bytes after the header, got 4");
  CHECK(refusal_of(npy(dict("<i2", "(1,)"), two)) == "trailing bytes: i16(1) expects 2 bytes after the header, got 4");
  CHECK(refusal_of(npy(dict("<i2", "(2,)"), two).substr(0, 60)) ==
        "expected a header of at most 50 bytes, got a length of 118; the file is truncated or damaged");
  CHECK(starts_with(refusal_of(npy(dict("|O", "(2,)"), two)), "dtype '|O' is not supported; expected bool, "));
  CHECK(starts_with(refusal_of(npy(dict("<U4", "(2,)"), two)), "dtype '<U4' is not supported; expected bool, "));
  CHECK(starts_with(refusal_of(npy(dict("<f16", "(2,)"), two)), "dtype '<f16' is not supported; expected bool, "));
  CHECK(starts_with(refusal_of(npy(dict("", "(2,)"), two)), "dtype '' is not supported; expected bool, "));
  CHECK(refusal_of(npy("{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (2,)}", two)) ==
        "expected an array of plain numbers, got records");
  CHECK(refusal_of(npy(dict("<i2", "(-2,)"), two)) == "its .npy header is damaged: expected a non-negative size at character 51");
  CHECK(refusal_of(npy(dict("<i2", "(2,)", "Maybe"), two)) == "its .npy header is damaged: expected True or False at character 34");
  CHECK(refusal_of(npy(dict("<i2", "(2"), two)) == "its .npy header is damaged: expected a non-negative size at character 54");
  CHECK(refusal_of(npy("{'descr': '<i2', 'shape': (2,)}", two)) == "its .npy header is damaged: key 'fortran_order' is missing");
  CHECK(refusal_of(npy("{'shape': (2,), 'shape': (2,)}", two)) == "its .npy header is damaged: key 'shape' is given twice");
  CHECK(refusal_of(npy("{'size': (2,)}", two)) ==
        "its .npy header is damaged: key 'size' is unknown, expected descr, fortran_order and shape");
  CHECK(refusal_of(npy("{'descr", two)) == "its .npy header is damaged: unterminated text at character 2");
  CHECK(refusal_of(npy(dict("<i2", "(2,)") + " x", two)) == "its .npy header is damaged: unexpected text after its end");
  CHECK(refusal_of(npy(dict("|b1", "(4,)"), two)) == "element 2 of bool is 2, expected 0 or 1");
}

TEST_CASE("npy: a header with a huge shape allocates nothing") {
  const std::string bomb = refusal_of(npy(dict("<f8", "(1000000000000, 1000)"), ""));
  CHECK(bomb == "truncated: f64(1000000000000,1000) expects 8000000000000000 bytes after the header, got 0");
  CHECK(contains(refusal_of(npy(dict("<f8", "(4611686018427387904,)"), "")), "expects more than 2^64 bytes"));
  CHECK(contains(refusal_of(npy(dict("<f8", "(9000000000, 9000000000)"), "")), "2^62"));
  CHECK(contains(refusal_of(npy(dict("<f8", "(99999999999999999999,)"), "")), "expected a non-negative size"));
  CHECK(contains(refusal_of(npy(dict("<f8", "(1,1,1,1,1,1,1,1,1)"), "12345678")), "8 dimensions"));
  std::string long_header = npy(dict("<i2", "(2,)"), "", 2);
  long_header.replace(8, 4, "\xff\xff\xff\x7f");
  CHECK(contains(refusal_of(long_header), "got a length of 2147483647"));
}

TEST_CASE_FIXTURE(InFolder, "npy: arrays that cannot be written are reported") {
  const std::string path = folder.file("a.npy");
  CHECK_ERROR(path + ": cannot be written: the .npy format has no dtype for bf16(2); cast it, or save it as safetensors",
              save_npy(path, Tensor::zeros(DType::bf16, {2})));
  CHECK_ERROR(path + ": cannot be written: the tensor is undefined", save_npy(path, Tensor()));
  CHECK(folder.count_files() == 0);
}

TEST_CASE_FIXTURE(InFolder, "npz: arrays round-trip in order, stored and deflated, with reproducible bytes") {
  std::vector<NamedTensor> arrays;
  for (const DType dtype : dtypes) arrays.push_back({name_of(dtype), patterned(dtype, {3, 100})});
  arrays.push_back({"empty", Tensor::zeros(DType::f32, {0})});
  for (const NpzCompression compression : {NpzCompression::none, NpzCompression::deflate}) {
    save_npz(folder.file("a.npz"), arrays, compression);
    const std::vector<NamedTensor> read = load_npz(folder.file("a.npz"));
    REQUIRE(read.size() == arrays.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
      CHECK(read[i].name == arrays[i].name);
      CHECK(equal(read[i].tensor, arrays[i].tensor));
    }
    CHECK(equal(load_npz(folder.file("a.npz"), "f64"), patterned(DType::f64, {3, 100})));
    const std::string first = folder.read("a.npz");
    save_npz(folder.file("a.npz"), arrays, compression);
    CHECK(folder.read("a.npz") == first);
  }
  save_npz(folder.file("none.npz"), {});
  CHECK(load_npz(folder.file("none.npz")).empty());
  CHECK_ERROR(folder.file("none.npz") + ": expected an array 'x', got an empty archive", load_npz(folder.file("none.npz"), "x"));
}

TEST_CASE_FIXTURE(InFolder, "npz: missing arrays and invalid names are reported") {
  const std::string path = folder.file("a.npz");
  const Tensor x = Tensor::scalar(1.0f);
  save_npz(path, {{"x", x}, {"y", x}});
  CHECK_ERROR(path + ": expected an array 'z', got x, y", load_npz(path, "z"));
  CHECK_ERROR(path + ": cannot be written: array 'x' is given twice", save_npz(path, {{"x", x}, {"x", x}}));
  CHECK_ERROR(path + ": cannot be written: array 'x.npy': expected a name of 1 to 65000 bytes without the ending .npy, which is appended",
              save_npz(path, {{"x.npy", x}}));
  CHECK_ERROR(path + ": array 'h': cannot be written: the .npy format has no dtype for bf16(1); cast it, or save it as safetensors",
              save_npz(path, {{"x", x}, {"h", Tensor::zeros(DType::bf16, {1})}}));
  CHECK(load_npz(path).size() == 2);  // the previous file
}

TEST_CASE_FIXTURE(InFolder, "npz: damage is reported with file and member") {
  const Tensor x = patterned(DType::i32, {50});
  save_npz(folder.file("a.npz"), {{"first", x}, {"second", x}});
  const std::string good = folder.read("a.npz");
  save_npz(folder.file("b.npz"), {{"first", x}, {"second", x}}, NpzCompression::deflate);
  const std::string packed = folder.read("b.npz");

  CHECK(npz_refusal_of("PK") == "expected a zip archive of at least 22 bytes, got 2");
  CHECK(npz_refusal_of(std::string(100, 'x')) == "not a zip archive, or truncated: the end record is missing");
  CHECK(npz_refusal_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n") ==
        "expected a zip archive, got a pointer of Git LFS; `git lfs pull` fetches the file itself");
  CHECK(npz_refusal_of(good.substr(0, good.size() - 1)) == "not a zip archive, or truncated: the end record is missing");
  CHECK(npz_refusal_of(good.substr(100)) == "its directory lies outside the file; it is truncated or damaged");
  CHECK(starts_with(npz_refusal_of(changed(good, "'<i4'", 0, '"')), "member 'first.npy': is damaged: expected CRC "));
  CHECK(npz_refusal_of(changed(good, directory_magic, 8, 1)) == "member 'first.npy': is encrypted; expected an archive without encryption");
  CHECK(npz_refusal_of(changed(good, directory_magic, 10, 12)) == "member 'first.npy': expected method 0 (stored) or 8 (deflated), got 12");
  CHECK(npz_refusal_of(changed(good, directory_magic, 24, 7)) == "member 'first.npy': is stored, but its two sizes differ");
  CHECK(npz_refusal_of(changed(good, directory_magic, 45, 0x7f)) ==
        "member 'first.npy': begins outside the file; the archive is truncated or damaged");
  CHECK(npz_refusal_of(changed(good, directory_magic, 42, 1)) == "member 'first.npy': its header is damaged");
  CHECK(npz_refusal_of(changed(good, directory_magic, 0, 'X')) == "entry 0 of its directory is damaged");
  CHECK(npz_refusal_of(changed(good, directory_magic, 29, 0x7f)) == "entry 0 of its directory is damaged");
  CHECK(npz_refusal_of(changed(good, "PK\x05\x06", 10, 9)) == "an archive of several disks is not supported; join its parts");
  // A member that declares far more than its bytes can hold, or a little more, or less.
  CHECK(starts_with(npz_refusal_of(changed(packed, directory_magic, 27, 0x7f)), "member 'first.npy': claims "));
  CHECK(npz_refusal_of(changed(packed, directory_magic, 24, 0x49)) ==
        "member 'first.npy': expected 329 bytes, got 328 from its deflated data");
  CHECK(npz_refusal_of(changed(packed, directory_magic, 24, 0x47)) ==
        "member 'first.npy': expected 327 bytes as in the directory, got more");
  CHECK(
      starts_with(npz_refusal_of(changed(packed, "first.npy", 9, '\xff')), "member 'first.npy': its deflated data is damaged near byte "));
  const std::string shorter = changed(packed, directory_magic, 20, 20);
  CHECK(starts_with(npz_refusal_of(shorter), "member 'first.npy': its deflated data is truncated after "));
}

TEST_CASE_FIXTURE(InFolder, "npz: members that overlap are rejected") {
  save_npz(folder.file("a.npz"), {{"first", Tensor::zeros(DType::f64, {1000})}, {"second", Tensor::zeros(DType::f64, {1000})}},
           NpzCompression::deflate);
  const std::string good = folder.read("a.npz");
  const std::size_t first = good.find(directory_magic), second = good.rfind(directory_magic);
  REQUIRE(second > first);
  std::string bomb = good;
  bomb.replace(second + 42, 4, good, first + 42, 4);  // the offset of the second member
  const std::string refusal = npz_refusal_of(bomb);
  CHECK_MESSAGE(refusal.find("overlaps member") != std::string::npos, refusal);
}

TEST_CASE_FIXTURE(InFolder, "npz: no single wrong byte causes a crash") {
  for (const NpzCompression compression : {NpzCompression::none, NpzCompression::deflate}) {
    save_npz(folder.file("a.npz"), {{"x", patterned(DType::f64, {4})}}, compression);
    const std::string good = folder.read("a.npz");
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (const char flip : {'\x01', '\x80', '\xff'}) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ flip);
        folder.write("bad.npz", bad);
        try {
          for (const NamedTensor& array : load_npz(folder.file("bad.npz"))) CHECK(array.tensor.defined());
        } catch (const Error&) {
        }
      }
    }
    for (std::size_t size = 0; size < good.size(); ++size) {
      folder.write("bad.npz", good.substr(0, size));
      CHECK_THROWS_AS(load_npz(folder.file("bad.npz")), Error);
    }
  }
}

TEST_CASE("npy, npz: files are interchangeable with NumPy") {
  if (!has_numpy()) {
    MESSAGE("skipped, because /usr/bin/python3 has no NumPy");
    return;
  }
  const TemporaryFolder folder;
  REQUIRE(python(folder, R"(
x = np.arange(24).reshape(2, 3, 4)
arrays = {}
for t in ['?', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8', 'c8', 'c16']:
  arrays[t.replace('?', 'b1')] = x.astype(t)
arrays['big'] = x.astype('>i4')
arrays['fortran'] = np.asfortranarray(x.astype('f4'))
arrays['sliced'] = x.astype('f4')[:, ::-1]
arrays['scalar'] = np.float64(2.5)
arrays['none'] = np.zeros((0, 2))
np.savez('plain.npz', **arrays)
np.savez_compressed('packed.npz', **arrays)
np.save('one.npy', arrays['f4'])
)"));
  for (const char* file : {"plain.npz", "packed.npz"}) {
    const std::vector<NamedTensor> arrays = load_npz(folder.file(file));
    REQUIRE(arrays.size() == 19);
    CHECK(arrays[0].name == "b1");
    CHECK(arrays[0].tensor.str() == "bool(2,3,4)");
    const std::string big = arrays[14].name;
    CHECK(big == "big");
    CHECK(arrays[14].tensor.to_vector<std::int32_t>()[23] == 23);
    const std::vector<float> fortran = arrays[15].tensor.to_vector<float>(), sliced = arrays[16].tensor.to_vector<float>();
    for (std::size_t i = 0; i < 24; ++i) CHECK(fortran[i] == static_cast<float>(i));
    CHECK(sliced[0] == 8.0f);
    CHECK(arrays[17].tensor.item() == 2.5);
    CHECK(arrays[18].tensor.str() == "f64(0,2)");
    save_npz(folder.file(std::string("back-") + file), arrays, file[1] == 'a' ? NpzCompression::deflate : NpzCompression::none);
  }
  CHECK(load_npy(folder.file("one.npy")).to_vector<float>()[23] == 23.0f);
  save_npy(folder.file("back.npy"), load_npy(folder.file("one.npy")));
  CHECK(python(folder, R"(
for name in ['plain.npz', 'packed.npz']:
  a, b = np.load(name), np.load('back-' + name)
  assert list(a.keys()) == list(b.keys())
  for k in a.keys():
    assert a[k].dtype.newbyteorder('=') == b[k].dtype and a[k].shape == b[k].shape and (a[k] == b[k]).all(), k
assert open('back.npy', 'rb').read() == open('one.npy', 'rb').read()
import zipfile
assert zipfile.ZipFile('back-plain.npz').testzip() is None
)"));
}
