// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "nic/adapter.h"

namespace anydat::nic::soft {

class SoftAdapter;
class Stream;
struct OwnWindows;

// A memory window: an entry of the region table that is replaced by another one with each bind. With the engine held.
//
// One of a queue pair's own has that one's number in the place of a zone, and is in its list from the bind until no
// peer uses what the bind has shown any longer.
class SoftWindow final : public Window {
 public:
  SoftWindow(SoftAdapter& adapter, ZoneId zone, WindowScope scope, WindowEvents& events)
      : adapter_(adapter), zone_(zone), scope_(scope), events_(events) {}
  ~SoftWindow() override;

  bool close() override;

  bool can_bind(const Segment& part) const;  // false: its region has gone meanwhile
  // Takes away what peers use now. False while one of them is in the middle of using it: ask again (RMR-BIND-6).
  bool withdrawn();
  // The same where it is not this side's program that wants it, which is told.
  bool taken_back();
  // What was withdrawn for a bind has nothing in its place, and who has bound it is told.
  void shows_nothing();
  // What a bind is carried out by.
  struct Binder {
    ZoneId scope;
    OwnWindows& windows;
    Stream& stream;
  };
  // Carries out, or gives up, the bind that reserved `key`. To carry it out requires: withdrawn().
  void bind(std::uint32_t key, const Segment& part, std::uint32_t rights, std::uint64_t tag, const Binder& by);
  void give_up(std::uint32_t key, std::uint64_t tag);
  // Whether it has shown this key to peers, and they may be using it still.
  bool shows(std::uint32_t key) const { return key_ == key || leaving_ == key; }

 private:
  friend struct OwnWindows;
  void leave_list();

  SoftAdapter& adapter_;
  const ZoneId zone_;
  const WindowScope scope_;
  WindowEvents& events_;
  std::uint32_t key_ = 0;      // what peers use now
  std::uint32_t leaving_ = 0;  // what they may be using still
  std::uint64_t tag_ = 0;      // of the bind that shows something, until its end is told; 0: none
  bool closed_ = false;
  bool known_ = false;  // queue pairs may still act on a check that found what it has shown
  // By which peers use what is of one queue pair alone: all others find in the table that it is not theirs. There as
  // long as they do. Null: any peer may.
  Stream* used_by_ = nullptr;
  OwnWindows* listed_in_ = nullptr;  // null: it is of a zone, or shows nothing
  base::ListLinks<SoftWindow> place_;
};

// Those that show something to the peer of one queue pair alone. With the engine held.
struct OwnWindows {
  // The peer is not to reach any of them any more. False while it is in the middle of using one: ask again.
  bool take_back_all();
  SoftWindow* find(std::uint32_t key) const;  // null: none shows it. Requires: key != 0

  base::List<SoftWindow, &SoftWindow::place_> all;
};

}  // namespace anydat::nic::soft
