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
  // Takes away what peers use now. False while one of them is in the middle of using it: ask again (RMR-BIND-6).
  bool withdrawn();
  // Carries out, or gives up, the bind that reserved `key`. To carry it out requires: withdrawn().
  void bind(std::uint32_t key, const Segment& part, std::uint32_t rights, std::uint64_t tag);
  void give_up(std::uint32_t key, std::uint64_t tag);

 private:
  SoftAdapter& adapter_;
  const ZoneId zone_;
  WindowEvents& events_;
  std::uint32_t key_ = 0;      // what peers use now
  std::uint32_t leaving_ = 0;  // what they may be using still
  bool closed_ = false;
};

}  // namespace anydat::nic::soft
