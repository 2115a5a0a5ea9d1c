// SPDX-License-Identifier: Apache-2.0
// Safetensors files: round trips, the bytes of the format, and malicious files.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <tenon/safetensors.h>

#include "io/safetensors_file.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string file_of(const std::string& header, const std::string& data, std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}
std::string file_of(const std::string& header, const std::string& data = "") {
  return file_of(header, data, header.size());
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.size_bytes())) == 0;
}

/// The error of loading a file of these bytes, without the leading path.
std::string refusal_of(const std::string& bytes) {
  return message_of_file("bad.safetensors", bytes, load_safetensors);
}
std::string refusal_of_header(const std::string& header, const std::string& data = "") {
  return refusal_of(file_of(header, data));
}

}  // namespace

TEST_CASE_FIXTURE(InFolder, "safetensors: every dtype round-trips bit for bit, in order, with metadata") {
  const std::string path = folder.file("all.safetensors");
  std::vector<NamedTensor> tensors;
  for (const DType t : {DType::boolean, DType::u8, DType::f64, DType::i8, DType::f16, DType::bf16, DType::i16, DType::u16, DType::f32,
                        DType::i32, DType::u32, DType::i64, DType::u64}) {
    Tensor tensor = Tensor::empty(t, {3, 5});
    auto* bytes = static_cast<unsigned char*>(tensor.raw());
    for (std::int64_t i = 0; i < tensor.size_bytes(); ++i) bytes[i] = static_cast<unsigned char>(t == DType::boolean ? i % 2 : 37 * i + 11);
    tensors.push_back({std::string("tensor.") + name_of(t), tensor});
  }
  tensors.push_back({"scalar", Tensor::scalar(3.5f)});
  tensors.push_back({"empty", Tensor::zeros(DType::f32, {0, 4})});
  tensors.push_back({"näme \"quoted\"\n", Tensor::scalar<std::int64_t>(-1)});
  const std::map<std::string, std::string> metadata = {{"format", "tenon"}, {"epoch", "3"}};
  save_safetensors(path, tensors, metadata);
  const Safetensors loaded = load_safetensors(path);
  CHECK(loaded.metadata == metadata);
  REQUIRE(loaded.tensors.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(loaded.tensors[i].name == tensors[i].name);
    CHECK(same(loaded.tensors[i].tensor, tensors[i].tensor));
  }
  CHECK(loaded.find("scalar")->item() == 3.5);
  CHECK(loaded.find("absent") == nullptr);
}

TEST_CASE_FIXTURE(InFolder, "safetensors: bytes follow the format, wide elements first, data at a multiple of 8") {
  const std::string path = folder.file("golden.safetensors");
  save_safetensors(path, {{"b", Tensor::of<std::uint8_t>({7, 8, 9}, {3})}, {"w", Tensor::of<float>({1.0f, -2.0f}, {1, 2})}}, {{"k", "v"}});
  const std::string header =
      R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(folder.read("golden.safetensors") == file_of(padded, std::string("\0\0\x80\x3f\0\0\0\xc0\x07\x08\x09", 11)));
}

TEST_CASE_FIXTURE(InFolder, "safetensors: files of other writers are read: any key order, spaces, unaligned data, no tensors") {
  std::string path =
      folder.write("other", file_of(" { \"x\" : {\"data_offsets\":[1,5], \"shape\":[], "
                                    "\"dtype\":\"F32\"},\n\"f\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}  ",
                                    std::string("\x01\0\0\x80\x3f", 5)));
  const Safetensors loaded = load_safetensors(path);
  REQUIRE(loaded.tensors.size() == 2);
  CHECK(loaded.tensors[0].name == "x");
  CHECK(loaded.find("x")->item() == 1.0);
  CHECK(loaded.find("f")->item() == 1.0);
  CHECK(load_safetensors(folder.write("none", file_of("{}"))).tensors.empty());
  CHECK(load_safetensors(folder.write("meta", file_of(R"({"__metadata__":{}})"))).tensors.empty());
}

TEST_CASE_FIXTURE(InFolder, "safetensors: a strided view is saved dense") {
  const Tensor t = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  save_safetensors(folder.file("view"), {{"t", t.transpose({1, 0})}});
  const Tensor back = load_safetensors(folder.file("view")).tensors[0].tensor;
  CHECK(same(back, Tensor::of<float>({1, 4, 2, 5, 3, 6}, {3, 2})));
}

TEST_CASE_FIXTURE(InFolder, "safetensors: names that cannot be saved are reported") {
  const std::string path = folder.file("bad");
  const Tensor t = Tensor::scalar(1.0f);
  const std::string begin = path + ": cannot be written: ";
  CHECK_ERROR((begin + "tensor \"w\" is given twice").c_str(), save_safetensors(path, {{"w", t}, {"w", t}}));
  CHECK_ERROR((begin + "tensor \"\": the format does not allow this name; choose another").c_str(), save_safetensors(path, {{"", t}}));
  CHECK_ERROR((begin + "tensor \"__metadata__\": the format does not allow this name; choose another").c_str(),
              save_safetensors(path, {{"__metadata__", t}}));
  CHECK_ERROR((begin + "tensor \"w\" is undefined").c_str(), save_safetensors(path, {{"w", Tensor()}}));
  CHECK_ERROR((begin + "tensor \"w\": the format has no dtype for c64(2); save real and imaginary parts separately").c_str(),
              save_safetensors(path, {{"w", Tensor::zeros(DType::c64, {2})}}));
  CHECK_ERROR((begin + "\"\xEF\xBF\xBD\" is not UTF-8").c_str(), save_safetensors(path, {{"\xff", t}}));
  CHECK(folder.count_files() == 0);
}

TEST_CASE("safetensors: a missing file is reported") {
  CHECK_ERROR("/no/such/file: file not found", load_safetensors("/no/such/file"));
}

TEST_CASE("safetensors: a file too short for its header is rejected") {
  CHECK(refusal_of("") == "expected a safetensors file of at least 8 bytes, got 0");
  CHECK(refusal_of("1234567") == "expected a safetensors file of at least 8 bytes, got 7");
  CHECK(refusal_of(file_of("{}", "", 3)) ==
        "expected a header of at most 2 bytes, got a length of 3; the file is truncated or not a safetensors file");
}

TEST_CASE("safetensors: a huge header is rejected before it is read") {
  CHECK(refusal_of(file_of("{}", "", ~std::uint64_t{0})) ==
        "expected a header of at most 2 bytes, got a length of 18446744073709551615; the file is truncated or not a safetensors file");
}

TEST_CASE("safetensors: a pointer of Git LFS has its remedy") {
  CHECK(refusal_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n") ==
        "expected a safetensors file, got a pointer of Git LFS; `git lfs pull` fetches the file itself");
}

TEST_CASE("safetensors: a header that is not the format's JSON is rejected") {
  CHECK(refusal_of_header("").find("its header is not JSON near byte") == 0);
  CHECK(refusal_of_header("{\"w\":").find("its header is not JSON near byte") == 0);
  CHECK(refusal_of_header("{} x").find("its header is not JSON near byte") == 0);
  CHECK(refusal_of_header("{\"\xff\":1}").find("its header is not JSON near byte") == 0);
  CHECK(refusal_of_header("[]") == "expected an object as its header, got a list");
  CHECK(refusal_of_header("7") == "expected an object as its header, got the number 7");
  CHECK(refusal_of_header(R"({"w":3})") == "tensor \"w\": expected an object, got the number 3");
  CHECK(refusal_of_header(R"({"w":null})") == "tensor \"w\": expected an object, got null");
  CHECK(refusal_of_header(R"({"__metadata__":{"a":1}})") == "metadata \"a\": expected a text, got the number 1");
  CHECK(refusal_of_header(R"({"__metadata__":{"a":{}}})") == "metadata \"a\": expected a text, got an object");
  CHECK(refusal_of_header(R"({"w":{"dtype":5}})") == "tensor \"w\": dtype: expected a text, got the number 5");
  CHECK(refusal_of_header(R"({"w":{"shape":"x"}})") == "tensor \"w\": shape: expected a list of integers, got the text \"x\"");
  CHECK(refusal_of_header(R"({"w":{"colour":"red"}})") == "tensor \"w\": expected the keys dtype, shape and data_offsets, got \"colour\"");
  CHECK(refusal_of_header(R"({"w":{"shape":[],"data_offsets":[0,0]}})") == "tensor \"w\": has no dtype");
  CHECK(refusal_of_header(R"({"w":{"dtype":"F32","data_offsets":[0,0]}})") == "tensor \"w\": has no shape");
  CHECK(refusal_of_header(R"({"w":{"dtype":"F32","shape":[]}})") == "tensor \"w\": has no data_offsets");
}

TEST_CASE("safetensors: nesting of any depth is rejected at the second level") {
  CHECK(refusal_of_header("{\"w\":{\"shape\":" + std::string(5'000'000, '[')) ==
        "tensor \"w\": shape: expected non-negative integers, got a list");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  CHECK(refusal_of_header(objects) == "tensor \"a\": expected the keys dtype, shape and data_offsets, got \"a\"");
}

TEST_CASE("safetensors: duplicates are rejected") {
  const std::string w = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  CHECK(refusal_of_header("{" + w + "," + w + "}", "x") == "tensor \"w\" is given twice");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","dtype":"U8"}})") == "tensor \"w\": key \"dtype\" is given twice");
  CHECK(refusal_of_header(R"({"__metadata__":{"a":"1","a":"2"}})") == "metadata \"a\" is given twice");
}

TEST_CASE("safetensors: unknown dtypes and impossible shapes are rejected") {
  CHECK(refusal_of_header(R"({"w":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", "x") ==
        "tensor \"w\": dtype \"F8_E4M3\" is unknown; expected F64 F32 F16 BF16 I64 I32 I16 I8 U8 U16 U32 U64 BOOL");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "x") ==
        "tensor \"w\": shape: expected non-negative integers, got the number -1");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", "x") ==
        "tensor \"w\": shape: expected non-negative integers, got the number 1.5");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", "x") ==
        "tensor \"w\": shape (1,1,1,1,1,1,1,1): already has 8 dimensions, another one of size 1 does not fit");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}})", "x") ==
        "tensor \"w\": size 18446744073709551615 in its shape exceeds the range of int64");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})") ==
        "tensor \"w\": shape (4294967296,4294967296): expected at most 2^62 elements, got more");
  // 2^62 elements of 8 bytes wrap to 0.
  CHECK(refusal_of_header(R"({"w":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})") ==
        "tensor \"w\": F64(4611686018427387904) expects 4611686018427387904 x 8 bytes, its data_offsets [0, 0) hold 0");
}

TEST_CASE("safetensors: offsets that do not fit dtype, shape or file are rejected") {
  CHECK(refusal_of_header(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "abcd") ==
        "tensor \"w\": F32(2) expects 2 x 4 bytes, its data_offsets [0, 4) hold 4");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", "abcd") ==
        "tensor \"w\": its data_offsets [4, 0) end before they begin");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", "abcd") ==
        "tensor \"w\": its data_offsets [0, 5) lie outside the file's 4 bytes of data; the file is truncated or damaged");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0]}})", "abcd") ==
        "tensor \"w\": expected 2 data_offsets, got 1");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4,8]}})", "abcd") ==
        "tensor \"w\": expected 2 data_offsets, got more");
  CHECK(refusal_of_header(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,-4]}})", "abcd") ==
        "tensor \"w\": data_offsets: expected non-negative integers, got the number -4");
}

TEST_CASE("safetensors: overlaps, gaps and trailing bytes are rejected") {
  const std::string a = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)";
  CHECK(refusal_of_header(a + R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", "abcdef") ==
        "tensor \"b\": its data_offsets [2, 6) overlap those of another tensor, which end at 4");
  CHECK(refusal_of_header(a + R"("b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})", "abcdef") ==
        "tensor \"b\": its data_offsets [5, 6) leave a gap after 4");
  CHECK(refusal_of_header(a + R"("b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})", "abcdef") ==
        "1 trailing bytes after the last tensor; expected 5 bytes of data, got 6");
}

TEST_CASE("safetensors: a bool that is neither 0 nor 1 is rejected") {
  CHECK(refusal_of_header(R"({"m":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", std::string("\x00\x01\x02", 3)) ==
        "tensor \"m\": element 2 of BOOL is 2, expected 0 or 1");
}

TEST_CASE("safetensors: hostile names are escaped and truncated in messages") {
  const std::string text = refusal_of_header("{\"\\u001b[2J" + std::string(1000, 'n') + "\":7}");
  CHECK(contains(text, "\\u001b[2J"));
  CHECK_FALSE(contains(text, "\x1b"));
  CHECK(text.size() < 250);
}

TEST_CASE_FIXTURE(InFolder, "safetensors: a file cut at any byte is rejected") {
  save_safetensors(folder.file("whole"), {{"w", Tensor::of<float>({1, 2, 3}, {3})}, {"b", Tensor::scalar(1.0f)}});
  const std::string whole = folder.read("whole");
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK(refusal_of(whole.substr(0, size)) != "no error");
}

TEST_CASE_FIXTURE(InFolder, "safetensors: of a file with checksums what is wanted is read and checked, and nothing else") {
  const std::string path = folder.file("parts.safetensors");
  const std::vector<NamedTensor> tensors{{"a", Tensor::full(DType::f32, {1000}, 1)},
                                         {"none", Tensor::zeros(DType::f32, {0})},
                                         {"flag", Tensor::zeros(DType::boolean, {5})},
                                         {"b", Tensor::full(DType::f64, {300}, 2)}};
  const io::FileChecksum checksum = io::write_safetensors(path, tensors, {});
  CHECK(checksum.has_parts);
  REQUIRE(checksum.tensors.size() == 4);
  const std::string whole = folder.read("parts.safetensors");
  const auto read = [&](const std::vector<std::string>& names) {
    io::SafetensorsFile file(path, checksum);
    const auto found = file.read([&](const std::string& name) { return std::ranges::find(names, name) != names.end(); });
    return std::pair(found, file.read_size_bytes());
  };
  const auto damage = [&](std::size_t at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    folder.write("parts.safetensors", bytes);
  };
  // The data begins with the widest elements: b, then a.
  const std::size_t data = whole.size() - 300 * 8 - 1000 * 4 - 5;
  const auto all = read({"a", "none", "flag", "b"});
  REQUIRE(all.first.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK((all.first[i].name == tensors[i].name && same(all.first[i].tensor, tensors[i].tensor)));
  CHECK(all.second == whole.size());
  CHECK(read({"a"}).second == data + 4000);
  CHECK(read({"none"}).second == data);
  CHECK(read({"nothing"}).first.empty());
  {
    io::SafetensorsFile file(path, checksum);  // in any order
    CHECK(same(file.read([](const std::string& name) { return name == "a"; })[0].tensor, tensors[0].tensor));
    CHECK(same(file.read([](const std::string& name) { return name == "b"; })[0].tensor, tensors[3].tensor));
    file.check();
  }

  damage(data + 10);  // of b
  CHECK(same(read({"a"}).first[0].tensor, tensors[0].tensor));
  CHECK_ERROR_CONTAINS(path + ": damaged: tensor \"b\": expected content of CRC-32 ", read({"a", "b"}));
  CHECK_ERROR_CONTAINS("damaged: tensor \"b\"", io::SafetensorsFile(path, checksum).check());
  damage(data + 300 * 8 + 4000);  // of flag
  CHECK_ERROR_CONTAINS("damaged: tensor \"flag\"", read({"flag"}));
  for (std::size_t at = 0; at < data; ++at) {
    damage(at);
    CHECK_ERROR_CONTAINS(path + ": ", read({"a"}));
  }
  folder.write("parts.safetensors", whole + "x");
  CHECK_ERROR_CONTAINS("damaged: expected ", read({"a"}));

  // One checksum of all, as earlier versions have it: everything is read.
  io::Crc32 of_all;
  of_all.add(whole.data(), whole.size());
  io::FileChecksum one;
  one.size_bytes = whole.size();
  one.crc32 = of_all.value();
  folder.write("parts.safetensors", whole);
  io::SafetensorsFile file(path, one);
  const std::vector<NamedTensor> only = file.read([](const std::string& name) { return name == "a"; });
  REQUIRE(only.size() == 1);
  CHECK(same(only[0].tensor, tensors[0].tensor));
  CHECK(file.read_size_bytes() == whole.size());
  damage(data + 10);
  CHECK_ERROR_CONTAINS(path + ": damaged: expected content of CRC-32 ", io::SafetensorsFile(path, one).check());
}
