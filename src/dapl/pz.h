// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dapl/error.h"
#include "dapl/object.h"
#include "nic/types.h"

namespace anydat::dapl {

// A protection zone: the label that ties endpoints and memory together. Uses are counted with the engine held.
class Pz final : public Object {
 public:
  static constexpr HandleType kType = HandleType::pz;

  Pz(Ia& ia, nic::ZoneId zone) : Object(ia, kType), zone_(zone) {}

  static Error create(Ia& ia, Handle* handle);
  Error free();  // engine held

  nic::ZoneId zone() const { return zone_; }
  void use() { ++uses_; }
  void release() { --uses_; }

 private:
  const nic::ZoneId zone_;
  std::uint32_t uses_ = 0;
};

}  // namespace anydat::dapl
