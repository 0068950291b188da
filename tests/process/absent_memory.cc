// SPDX-License-Identifier: BSD-3-Clause
#include "absent_memory.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace anydat::test {
namespace {

// One that the kernel's own accesses wait for, too; that takes a privilege, one way or the other.
int open_userfaultfd() {
  constexpr unsigned long kNew = _IO(0xAA, 0x00);  // USERFAULTFD_IOC_NEW, which older headers lack
  const int device = ::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  int fd = -1;
  if (device >= 0) {
    fd = ::ioctl(device, kNew, O_CLOEXEC);
    ::close(device);
  }
  if (fd < 0) fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
  if (fd < 0) return -1;
  uffdio_api api{};
  api.api = UFFD_API;
  if (::ioctl(fd, UFFDIO_API, &api) == 0) return fd;
  ::close(fd);
  return -1;
}

uffdio_range range_of(std::span<std::byte> pages) {
  return {reinterpret_cast<std::uintptr_t>(pages.data()), pages.size()};
}

}  // namespace

bool AbsentMemory::possible() {
  const int fd = open_userfaultfd();
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

AbsentMemory::AbsentMemory(std::span<std::byte> pages) : pages_(pages), fd_(open_userfaultfd()) {
  uffdio_register promise{};
  promise.range = range_of(pages);
  promise.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (fd_ < 0 || ::ioctl(fd_, UFFDIO_REGISTER, &promise) != 0 ||
      ::madvise(pages.data(), pages.size(), MADV_DONTNEED) != 0) {
    ::close(fd_);
    throw std::runtime_error("memory cannot be taken away");
  }
}

AbsentMemory::~AbsentMemory() {
  uffdio_range range = range_of(pages_);
  ::ioctl(fd_, UFFDIO_UNREGISTER, &range);
  ::close(fd_);
}

void AbsentMemory::fill(std::span<const std::byte> content) {
  uffdio_copy copy{};
  copy.dst = reinterpret_cast<std::uintptr_t>(pages_.data());
  copy.src = reinterpret_cast<std::uintptr_t>(content.data());
  copy.len = pages_.size();
  if (::ioctl(fd_, UFFDIO_COPY, &copy) != 0) throw std::runtime_error("memory cannot be brought");
}

}  // namespace anydat::test
