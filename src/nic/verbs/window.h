// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include "base/list.h"
#include "nic/adapter.h"
#include "nic/verbs/resources.h"

namespace anydat::nic::verbs {

class VerbsAdapter;

// What a bind will show: memory that has been registered for it.
struct RegisteredPart final : PreparedBind {
  explicit RegisteredPart(MemoryRegion region) : memory(std::move(region)) {}
  MemoryRegion memory;
};

// A bind whose turn has not come. Who has its key reaches its part already, so that goes with the window and with the
// region.
struct PendingBind {
  Segment part{};       // of a region, whose key it names; of length 0: nothing
  MemoryRegion memory;  // what the window shows once the bind is done; none: nothing
  base::ListLinks<PendingBind> links{};
  using List = base::List<PendingBind, &PendingBind::links>;
};

// A memory window, made of regions: each bind registers its part of memory anew, with the rights of the bind and a key
// of its own, and drops what the window showed before. So it needs nothing of the device, and the rules of binding hold
// everywhere; a bind costs as much as a registration. Windows of devices do not keep these rules: docs/verbs.md.
//
// Thread safety: with the engine held, also to make and to destroy it. What the kernel does not do at once is done
// without: a part is registered before its bind is posted, and dropped by the reaper.
class VerbsWindow final : public Window {
 public:
  VerbsWindow(VerbsAdapter& adapter, ZoneId zone, WindowEvents& events)
      : adapter_(adapter), zone_(zone), events_(events) {}
  ~VerbsWindow() override;

  bool close() override;
  // From its post on, until bind() or give_up().
  void expect(PendingBind& bind);
  // False: the region has gone meanwhile.
  bool can_bind(const Segment& part) const;
  // Takes back what the window shows. True: nothing can be reached through it. False: the device still has it; the
  // queue pair with this tag goes on when it has not (RMR-BIND-6).
  bool withdrawn(std::uint32_t tag);
  // Carries out a bind, or gives it up; the former once nothing is shown.
  void bind(PendingBind& bind, std::uint64_t tag);
  // What was withdrawn for a bind has nothing in its place, and who has bound it is told.
  void shows_nothing();
  void give_up(PendingBind& bind, std::uint64_t tag);
  // The region with this key goes.
  void drop_pending_on(std::uint32_t key);
  // For the adapter: the device has let go of a part.
  void part_gone();

 private:
  void drop(MemoryRegion memory, std::uint32_t key);
  void drop_shown();
  void forget(PendingBind& bind);

  VerbsAdapter& adapter_;
  const ZoneId zone_;
  WindowEvents& events_;
  MemoryRegion shown_;
  std::uint32_t shown_of_ = 0;  // the key of the region that it is a part of
  std::uint64_t tag_ = 0;       // of the bind that shows something, until its end is told; 0: none
  PendingBind::List pending_;
  unsigned leaving_ = 0;                // parts that the device still has
  std::vector<std::uint32_t> waiting_;  // tags of queue pairs whose bind waits for that
  bool closed_ = false;
};

}  // namespace anydat::nic::verbs
