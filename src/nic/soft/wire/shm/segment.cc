// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/segment.h"

#include <sys/stat.h>

#include <new>

#include "os/mapping.h"
#include "os/memory_file.h"

namespace anydat::nic::soft::shm {

Segment::Segment(void* memory, int fd) : memory_(memory) {
  struct stat status {};
  if (fstat(fd, &status) == 0) order_ = base::HiddenOrder(status.st_ino);
}

Segment::~Segment() {
  os::unmap(memory_, kSegmentBytes);
}

Segment Segment::create(base::UniqueFd& fd) {
  fd = os::make_memory_file("anydat", kSegmentBytes);
  if (!fd || !os::seal(fd.get())) return {};
  void* memory = os::map_shared(fd.get(), kSegmentBytes, true);
  if (!memory) return {};
  auto* header = new (memory) SegmentHeader{};
  header->magic = kMagic;
  header->version = kVersion;
  header->segment_bytes = kSegmentBytes;
  return Segment(memory, fd.get());
}

Segment Segment::attach(int fd) {
  if (!os::cannot_shrink_below(fd, kSegmentBytes)) return {};
  struct stat status;
  if (fstat(fd, &status) != 0 || status.st_size != static_cast<off_t>(kSegmentBytes)) return {};
  Segment segment(os::map_shared(fd, kSegmentBytes, true), fd);
  if (!segment) return {};
  const SegmentHeader& header = segment.header();
  if (header.magic != kMagic || header.version != kVersion || header.segment_bytes != kSegmentBytes) return {};
  return segment;
}

}  // namespace anydat::nic::soft::shm
