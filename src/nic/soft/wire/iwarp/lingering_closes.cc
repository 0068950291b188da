// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/lingering_closes.h"

#include <algorithm>
#include <vector>

#include "os/poll.h"

namespace anydat::nic::soft::iwarp {

void LingeringCloses::add(std::unique_ptr<LingeringClose> lingering) {
  of(lingering->stage()).add(std::move(lingering)).begin();
}

void LingeringCloses::wait() {
  std::vector<LingeringClose*> all;
  for (const Finishing<LingeringClose>* some : {&peers_, &strangers_}) {
    for (const auto& lingering : *some) all.push_back(lingering.get());
  }
  os::Nanoseconds now = os::now_ns();
  for (LingeringClose* lingering : all) lingering->hurry(now);
  // Whether there has been progress is looked at between two waits only, which costs a system call for each.
  constexpr os::Nanoseconds kBetweenLooks = 100'000'000;
  os::Nanoseconds next_look = now + kBetweenLooks;
  std::vector<pollfd> entries;
  while (!all.empty()) {
    entries.clear();
    for (const LingeringClose* lingering : all) entries.push_back({lingering->socket(), lingering->awaits(), 0});
    os::poll(entries, static_cast<int>((next_look - now) / 1'000'000 + 1));
    now = os::now_ns();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].revents != 0) all[i]->ready(0);
    }
    if (now >= next_look) {
      for (LingeringClose* lingering : all) lingering->look(now);
      next_look = now + kBetweenLooks;
    }
    std::erase_if(all, [](const LingeringClose* lingering) { return lingering->over(); });
  }
}

}  // namespace anydat::nic::soft::iwarp
