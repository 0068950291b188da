// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dapl/object.h"
#include "nic/types.h"

namespace anydat::dapl {

// A protection zone: the label that ties endpoints and memory together. Uses are counted with the engine held.
class Pz final : public Object {
 public:
  static constexpr DAT_HANDLE_TYPE kType = DAT_HANDLE_TYPE_PZ;

  Pz(Ia& ia, nic::ZoneId zone) : Object(ia, kType), zone_(zone) {}

  static DAT_RETURN create(Ia& ia, DAT_PZ_HANDLE* handle);
  DAT_RETURN query(DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* param);
  DAT_RETURN free();  // engine held

  nic::ZoneId zone() const { return zone_; }
  void use() { ++uses_; }
  void release() { --uses_; }

 private:
  const nic::ZoneId zone_;
  std::uint32_t uses_ = 0;
};

}  // namespace anydat::dapl
