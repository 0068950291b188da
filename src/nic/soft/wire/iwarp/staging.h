// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace anydat::nic::soft::iwarp {

// Where what has arrived is read to if it has no better place: one for all connections, since one thread reads at a
// time. With the engine held.
class Staging {
 public:
  std::span<std::byte> bytes() { return {bytes_.get(), kBytes}; }

  // Memory for a connection that has to keep what was in there.
  std::vector<std::byte> take_spare() { return spares_ > 0 ? std::move(spare_[--spares_]) : std::vector<std::byte>{}; }
  void give_spare(std::vector<std::byte> memory) noexcept {
    if (memory.capacity() == 0 || spares_ == spare_.size()) return;
    memory.clear();
    spare_[spares_++] = std::move(memory);
  }

 private:
  static constexpr std::size_t kBytes = 128 << 10;

  std::unique_ptr<std::byte[]> bytes_{new std::byte[kBytes]};
  std::array<std::vector<std::byte>, 32> spare_;
  std::size_t spares_ = 0;
};

}  // namespace anydat::nic::soft::iwarp
