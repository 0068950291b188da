// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_limit.h"

namespace anydat::os {

base::UniqueFd make_memory_file(const char* label, std::size_t bytes) {
  if (!base::file_may_have(bytes)) {
    errno = EFBIG;
    return {};
  }
  base::UniqueFd fd = base::UniqueFd::of([&] { return memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING); });
  if (fd && ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return {};
  return fd;
}

}  // namespace anydat::os
