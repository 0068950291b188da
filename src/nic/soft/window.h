// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/adapter.h"

namespace anydat::nic::soft {

class SoftAdapter;

// A memory window: an entry of the region table that is replaced by another one with each bind. With the engine held.
class SoftWindow final : public Window {
 public:
  SoftWindow(SoftAdapter& adapter, ZoneId zone, WindowEvents& events)
      : adapter_(adapter), zone_(zone), events_(events) {}
  ~SoftWindow() override { close(); }

  void close() override;

  bool can_bind(const Segment& part) const;  // false: its region has gone meanwhile
  // Carries out, or gives up, the bind that reserved `key`.
  void bind(std::uint32_t key, const Segment& part, std::uint32_t rights, std::uint64_t tag);
  void give_up(std::uint32_t key, std::uint64_t tag);

 private:
  void withdraw();

  SoftAdapter& adapter_;
  const ZoneId zone_;
  WindowEvents& events_;
  std::uint32_t key_ = 0;  // what peers use now
  bool closed_ = false;
};

}  // namespace anydat::nic::soft
