// SPDX-License-Identifier: BSD-3-Clause
#include "os/poll.h"

#include <cerrno>

#include "os/uncancelled.h"

namespace anydat::os {

int poll(std::span<pollfd> entries, int milliseconds) {
  return uncancelled::poll(entries.data(), entries.size(), milliseconds);
}

PollEnd sleep_until_readable(int fd, Nanoseconds time) {
  const timespec left = to_timespec(time);
  pollfd entry{fd, POLLIN, 0};
  const int count = ppoll(&entry, 1, time == kForever ? nullptr : &left, nullptr);
  return count < 0 && errno == EINTR ? PollEnd::interrupted : PollEnd::ready_or_timed_out;
}

}  // namespace anydat::os
