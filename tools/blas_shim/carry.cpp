#include "carry.h"

namespace tenon::shim {

void* Carrier::take(void* host, std::int64_t size_bytes, bool there, bool back) {
  if (host == nullptr || size_bytes == 0) return host;
  Piece piece{Tensor::borrow(host, DType::u8, Shape{size_bytes}), device_.empty(DType::u8, Shape{size_bytes}), back};
  if (there) piece.far.copy_from(piece.host);
  void* address = piece.far.raw();
  pieces_.push_back(std::move(piece));
  return address;
}

void Carrier::bring_back() {
  for (Piece& piece : pieces_) {
    if (piece.back) piece.host.copy_from(piece.far);
  }
}

}  // namespace tenon::shim
