// SPDX-License-Identifier: BSD-3-Clause
#include "os/readable.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "os/uncancelled.h"

namespace anydat::os {

std::unique_ptr<Readable> Readable::make() {
  UniqueFd fd = UniqueFd::of([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!fd) return nullptr;
  return std::unique_ptr<Readable>(new Readable(std::move(fd)));
}

// Not write() and read(), which are cancellation points. The program may have closed the descriptor and have a file of
// its own by that number.
void Readable::set() {
  if (!fd_.is_ours()) return;
  const std::uint64_t one = 1;
  (void)uncancelled::write(fd_.get(), &one, sizeof one);
}

void Readable::clear() {
  if (!fd_.is_ours()) return;
  std::uint64_t count = 0;
  (void)uncancelled::read(fd_.get(), &count, sizeof count);
}

}  // namespace anydat::os
