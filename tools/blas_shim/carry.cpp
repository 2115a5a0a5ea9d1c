// SPDX-License-Identifier: Apache-2.0
#include "carry.h"

namespace tenon::shim {

void* Carrier::carry_over(void* host, std::int64_t size_bytes, bool copy_in, bool copy_out) {
  if (host == nullptr || size_bytes == 0) return host;
  Piece piece{Tensor::borrow(host, DType::u8, Shape{size_bytes}), device_.empty(DType::u8, Shape{size_bytes}), copy_out};
  if (copy_in) piece.device.copy_from(piece.host);
  void* address = piece.device.raw();
  pieces_.push_back(std::move(piece));
  return address;
}

void Carrier::copy_back() {
  for (Piece& piece : pieces_) {
    if (piece.copy_out) piece.host.copy_from(piece.device);
  }
}

}  // namespace tenon::shim
