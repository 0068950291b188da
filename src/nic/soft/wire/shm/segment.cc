// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/segment.h"

#include <new>

#include "os/mapping.h"
#include "os/memory_file.h"

namespace anydat::nic::soft::shm {

Segment::Segment(void* memory, int fd) : memory_(memory) {
  if (const std::uint64_t number = os::number_of(fd)) order_ = base::HiddenOrder(number);
}

Segment::~Segment() {
  os::unmap(memory_, kSegmentBytes);
}

Segment Segment::create(os::UniqueFd& fd) {
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
  if (os::size_of(fd) != kSegmentBytes) return {};
  Segment segment(os::map_shared(fd, kSegmentBytes, true), fd);
  if (!segment) return {};
  const SegmentHeader& header = segment.header();
  if (header.magic != kMagic || header.version != kVersion || header.segment_bytes != kSegmentBytes) return {};
  return segment;
}

}  // namespace anydat::nic::soft::shm
