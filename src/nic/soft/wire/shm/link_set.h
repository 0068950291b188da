// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nic/engine.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/marks.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::shm {

class Link;

// What the set of links knows of one of them.
struct LinkPlace {
  enum class Interest : std::uint8_t { none, warm, hot };
  Interest interest = Interest::none;
  bool cooling = false;      // warm, but its peer rings already
  bool served = false;       // in the turn of several
  std::uint64_t active = 0;  // the last turn in which it brought something, or began to cool
  std::uint32_t slot = kMarkSlots;
  std::size_t index = 0;  // among all
};

// The links of an adapter, looked at in such a way that those on which nothing goes on cost nothing.
//
// A few are *hot*: each pass looks straight at their rings, and their peers need not tell anybody. *Warm* ones bring
// something now and then: their peers mark them, and they are looked at by time as well. The peers of all others mark
// them and ring besides. By time a share of those is looked at, too, whatever the marks say.
//
// Where several bring something, the first message of each is delivered before the second of any, and then a row of
// each.
//
// A link that cools down is looked at by time once more before it counts as cold, or after the fence that comes before
// a sleep: its peer may have published just before it could see that it has to ring.
//
// Thread safety: wake() from any thread; all else with the engine held.
class LinkSet final : public PollSource {
 public:
  LinkSet();
  explicit operator bool() const { return static_cast<bool>(marks_); }
  int descriptor() const { return fd_.get(); }  // of the marks, for peers

  void add(Link& link);  // may throw std::bad_alloc; hot at first
  void remove(Link& link);
  // The link has something to do, whatever its peer has done.
  void wake(std::uint32_t slot) { marks_.mark(slot); }
  // The link's peer has rung.
  void rung(Link& link);

  // PollSource
  bool poll() override;
  bool look_by_time() override;
  void note_fast_passes() override { marks_.count_pass(); }
  void arm() override;
  void disarm() override;

 private:
  using Interest = LinkPlace::Interest;

  bool serve_hot(std::size_t first);
  bool serve_with_others(std::size_t first, bool marked);
  bool serve(Link& link);
  void look_next(Link& link);
  void gather(Link& link);
  void gather_marked();
  bool serve_gathered();
  bool serve_rest(Link& link);
  void heat(Link& link);
  void cool(Link& link);
  void forget(Link& link);
  void set_attention(Link& link);
  void let_cool();

  os::UniqueFd fd_;
  MarkTable marks_;
  std::vector<Link*> all_;
  std::vector<Link*> hot_;  // has room for all, like the next two
  std::vector<Link*> warm_;
  std::vector<Link*> served_;  // in the turn of several
  std::vector<Link*> slots_;
  std::uint32_t mark_words_ = 0;           // where the slots that have been in use are marked
  std::vector<std::uint32_t> free_slots_;  // has room for all
  std::uint64_t turn_ = 0;                 // looks at everything
  std::size_t share_ = 0;                  // where the next share of all begins
  bool armed_ = false;
};

}  // namespace anydat::nic::soft::shm
