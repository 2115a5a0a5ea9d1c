// SPDX-License-Identifier: Apache-2.0
// The cuda backend's sort and strided copies on the emulation, beyond the sizes and layouts that ops use.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "backends/cuda/movement/radix_sort.h"
#include "backends/cuda/movement/strided_copy.h"
#include "cuda_testing.h"
#include "handles.h"

namespace tenon::cuda {
namespace {

TEST_CASE("cuda sort: pairs are sorted by key and the sort is stable") {
  Device device{sdk::Host(), 0};
  Stream stream{device};
  std::mt19937_64 random(7);
  for (const std::int64_t count : {1, 2, 31, 257, 4096, 4097, 9000}) {
    for (const int bits : {3, 8, 13, 64}) {
      CAPTURE(count);
      CAPTURE(bits);
      std::vector<std::uint64_t> keys(static_cast<std::size_t>(count));
      for (std::uint64_t& key : keys) key = bits == 64 ? random() : random() & ((std::uint64_t{1} << bits) - 1);
      std::vector<std::uint32_t> values(keys.size()), expected(keys.size());
      std::iota(values.begin(), values.end(), 0u);
      std::iota(expected.begin(), expected.end(), 0u);
      std::stable_sort(expected.begin(), expected.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });

      DeviceBuffer scratch(device, stream, sort_bytes(count));
      const SortBuffers buffers = sort_buffers(scratch.at(), count);
      scratch.write(keys, scratch.place_of(buffers.keys[0]));
      scratch.write(values, scratch.place_of(buffers.values[0]));
      const int side = sort_pairs(stream, buffers, count, bits);
      CHECK(scratch.read<std::uint32_t>(values.size(), scratch.place_of(buffers.values[side])) == expected);
      const auto sorted = scratch.read<std::uint64_t>(keys.size(), scratch.place_of(buffers.keys[side]));
      CHECK(std::is_sorted(sorted.begin(), sorted.end()));
    }
  }
}

TEST_CASE("cuda sort: only the necessary bits are sorted") {
  CHECK(bits_below(2) == 1);
  CHECK(bits_below(256) == 8);
  CHECK(bits_below(257) == 9);
}

TEST_CASE("cuda copies: in any layout and alignment each element arrives, and nothing else changes") {
  Device device{sdk::Host(), 0};
  Stream stream{device};
  std::mt19937 random(3);
  const std::int64_t shape[3] = {3, 34, 40};
  constexpr std::size_t count = 3 * 34 * 40, capacity = 2 * count + 64;
  const std::array<sdk::Strides, 5> layouts{{{1360, 40, 1}, {1360, 1, 34}, {40, 120, 1}, {1, 3, 102}, {2720, 80, 2}}};
  std::vector<std::uint16_t> source(capacity);
  for (std::uint16_t& x : source) x = static_cast<std::uint16_t>(random());
  for (const sdk::Strides& from : layouts) {
    for (const sdk::Strides& to : layouts) {
      for (const std::size_t offset : {0, 1}) {
        DeviceBuffer memory(device, stream, 2 * capacity * sizeof(std::uint16_t));
        std::vector<std::uint16_t> expected(capacity, 0xABAB);
        memory.write(source);
        memory.write(expected, 2 * capacity);
        for (std::int64_t i = 0; i < shape[0]; ++i) {
          for (std::int64_t j = 0; j < shape[1]; ++j) {
            for (std::int64_t k = 0; k < shape[2]; ++k) {
              expected[offset + static_cast<std::size_t>(i * to[0] + j * to[1] + k * to[2])] =
                  source[static_cast<std::size_t>(i * from[0] + j * from[1] + k * from[2])];
            }
          }
        }
        copy_strided(stream, 2, StridedCopy{shape, 3, memory.at(), from, memory.at(2 * (capacity + offset)), to});
        CHECK(memory.read<std::uint16_t>(capacity, 2 * capacity) == expected);
      }
    }
  }
}

void copy_together(const Device& device, tenon_stream& stream, const std::vector<sdk::Operand>& inputs,
                   const std::vector<sdk::Operand>& outputs) {
  std::vector<sdk::Call> calls(inputs.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].inputs = &inputs[i];
    calls[i].outputs = &outputs[i];
    calls[i].input_count = calls[i].output_count = 1;
    calls[i].stream = &stream;
  }
  device.batched_copy()->kernel->traits.run_together(calls.data(), static_cast<std::uint32_t>(calls.size()));
}

TEST_CASE("cuda copies: any number of them, of any dtype, size, alignment and strides, are made at once") {
  Device device{sdk::Host(), 0};
  tenon_stream abi_stream{std::make_unique<Stream>(device)};
  auto& stream = static_cast<Stream&>(*abi_stream.stream);
  constexpr std::size_t count = 300, capacity = 1 << 20;
  std::vector<std::uint8_t> source(capacity), expected(capacity, 0xAB);
  std::mt19937 random(5);
  for (std::uint8_t& x : source) x = static_cast<std::uint8_t>(random());
  DeviceBuffer from(device, stream, source), to(device, stream, expected);
  std::vector<std::array<std::int64_t, 2>> shapes(count), strides(count);
  std::vector<sdk::Operand> inputs, outputs;
  std::size_t place = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t element = std::size_t{1} << i % 4;
    const tenon_dtype dtype = std::array{TENON_DTYPE_U8, TENON_DTYPE_BF16, TENON_DTYPE_F32, TENON_DTYPE_F64}[i % 4];
    const bool turned = i % 3 == 0;
    shapes[i] = {static_cast<std::int64_t>(random() % 7), i == 17 ? 9001 : static_cast<std::int64_t>(random() % 90)};
    strides[i] = turned ? std::array{std::int64_t{1}, shapes[i][0]} : std::array{shapes[i][1], std::int64_t{1}};
    const std::int64_t elements = shapes[i][0] * shapes[i][1];
    inputs.push_back({from.at(place), shapes[i].data(), strides[i].data(), elements, 2, dtype, !turned});
    outputs.push_back(inputs.back());
    outputs.back().data = to.at(place);
    for (std::int64_t e = 0; e < elements; ++e) {
      const std::int64_t at = e / shapes[i][1] * strides[i][0] + e % shapes[i][1] * strides[i][1];
      std::copy_n(source.data() + place + static_cast<std::size_t>(at) * element, element,
                  expected.data() + place + static_cast<std::size_t>(e) * element);
    }
    place += (static_cast<std::size_t>(elements) + i % 5 + 1) * element;
    place = (place + 7) / 8 * 8;
    REQUIRE(place + 9001 * 8 * 7 < capacity);
  }
  copy_together(device, abi_stream, inputs, outputs);
  CHECK(to.read<std::uint8_t>(capacity) == expected);
}

TEST_CASE("cuda copies: batches of dense copies whose addresses have any difference") {
  Device device{sdk::Host(), 0};
  tenon_stream abi_stream{std::make_unique<Stream>(device)};
  auto& stream = static_cast<Stream&>(*abi_stream.stream);
  constexpr std::int64_t sizes[] = {1, 2, 7, 15, 16, 33, 17000, 40000};
  constexpr std::int64_t stride = 1;
  for (const std::size_t from_offset : {0, 1, 2, 3, 4, 8, 12}) {
    for (const std::size_t to_offset : {0, 1, 3, 6, 8}) {
      CAPTURE(from_offset);
      CAPTURE(to_offset);
      constexpr std::size_t place = 40032, capacity = std::size(sizes) * place + 16;  // a multiple of 16 for each copy
      std::vector<std::uint8_t> source(capacity), expected(capacity, 0xEE);
      for (std::size_t i = 0; i < capacity; ++i) source[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
      DeviceBuffer from(device, stream, source), to(device, stream, expected);
      std::vector<sdk::Operand> inputs, outputs;
      for (std::size_t i = 0; i < std::size(sizes); ++i) {
        const std::size_t read = i * place + from_offset, written = i * place + to_offset;
        inputs.push_back({from.at(read), &sizes[i], &stride, sizes[i], 1, TENON_DTYPE_U8, true});
        outputs.push_back(inputs.back());
        outputs.back().data = to.at(written);
        std::copy_n(source.data() + read, sizes[i], expected.data() + written);
      }
      copy_together(device, abi_stream, inputs, outputs);
      CHECK(to.read<std::uint8_t>(capacity) == expected);
    }
  }
}

}  // namespace
}  // namespace tenon::cuda
