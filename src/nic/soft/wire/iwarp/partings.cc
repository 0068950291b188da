// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/partings.h"

#include <poll.h>

#include <algorithm>
#include <vector>

#include "os/uncancelled.h"

namespace anydat::nic::soft::iwarp {

void Partings::add(std::unique_ptr<Farewell> farewell) {
  of(farewell->stage()).add(std::move(farewell)).begin();
}

void Partings::wait() {
  std::vector<Farewell*> all;
  for (const Finishing<Farewell>* some : {&peers_, &strangers_}) {
    for (const auto& farewell : *some) all.push_back(farewell.get());
  }
  base::Nanoseconds now = base::now_ns();
  for (Farewell* farewell : all) farewell->hurry(now);
  // Whether there has been progress is looked at between two waits only, which costs a system call for each.
  constexpr base::Nanoseconds kBetweenLooks = 100'000'000;
  base::Nanoseconds next_look = now + kBetweenLooks;
  std::vector<pollfd> entries;
  while (!all.empty()) {
    entries.clear();
    for (const Farewell* farewell : all) entries.push_back({farewell->socket(), farewell->awaits(), 0});
    os::uncancelled::poll(entries.data(), entries.size(), static_cast<int>((next_look - now) / 1'000'000 + 1));
    now = base::now_ns();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].revents != 0) all[i]->ready(0);
    }
    if (now >= next_look) {
      for (Farewell* farewell : all) farewell->look(now);
      next_look = now + kBetweenLooks;
    }
    std::erase_if(all, [](const Farewell* farewell) { return farewell->over(); });
  }
}

}  // namespace anydat::nic::soft::iwarp
