// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory_map.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>

#include "os/uncancelled.h"
#include "os/unique_fd.h"

namespace anydat::os {

namespace {

struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool writable = false;
  bool shared = false;
  std::uint64_t offset = 0;
  dev_t device = 0;
  ino_t inode = 0;
};

// As <linux/fs.h> has it since Linux 6.11.
struct Query {
  std::uint64_t size, flags, address;  // in
  std::uint64_t start, end, mapping_flags, page_size, offset, inode;
  std::uint32_t device_major, device_minor;
  std::uint32_t name_size, build_id_size;
  std::uint64_t name_address, build_id_address;
};
constexpr unsigned long kQuery = _IOWR('f', 17, Query);
constexpr std::uint64_t kReadable = 0x01;
constexpr std::uint64_t kWritable = 0x02;
constexpr std::uint64_t kShared = 0x08;
constexpr std::uint64_t kThisOrNext = 0x10;

// The mapping that has the address, or with kThisOrNext perhaps the next one.
bool query(int maps, std::uint64_t address, std::uint64_t flags, Query& answer) {
  answer = {};
  answer.size = sizeof answer;
  answer.flags = flags;
  answer.address = address;
  return ioctl(maps, kQuery, &answer) == 0;
}

UniqueFd open_maps() {
  return UniqueFd::of([] { return uncancelled::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC); });
}

// The mappings from an address on, in order.
class Mappings {
 public:
  // Of the calling thread: of a process whose first thread has ended, /proc/self shows nothing.
  explicit Mappings(std::uint64_t from) : from_(from), file_(open_maps()) {}
  explicit operator bool() const { return static_cast<bool>(file_); }

  bool next(Mapping& mapping) {
    if (asks_) {
      if (ask(mapping)) return true;
      if (errno != ENOTTY && errno != EINVAL && errno != EPERM && errno != EACCES) return false;
      asks_ = false;
    }
    return read(mapping);
  }

 private:
  bool ask(Mapping& mapping) {
    Query found;
    if (!query(file_.get(), from_, kThisOrNext, found)) return false;
    mapping = {found.start,
               found.end,
               (found.mapping_flags & kWritable) != 0,
               (found.mapping_flags & kShared) != 0,
               found.offset,
               makedev(found.device_major, found.device_minor),
               found.inode};
    from_ = found.end;
    return true;
  }

  // Lines are sorted by address.
  bool read(Mapping& mapping) {
    while (read_line()) {
      unsigned major_number = 0, minor_number = 0;
      std::uint64_t inode = 0;
      char permissions[5];
      if (std::sscanf(line_.data(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &mapping.start,
                      &mapping.end, permissions, &mapping.offset, &major_number, &minor_number, &inode) != 7) {
        return false;
      }
      if (mapping.end <= from_) continue;
      mapping.writable = permissions[1] == 'w';
      mapping.shared = permissions[3] == 's';
      mapping.device = makedev(major_number, minor_number);
      mapping.inode = inode;
      return true;
    }
    return false;
  }

  // The path at the end of a line may be of any length: no more is kept of it than is needed.
  bool read_line() {
    std::size_t length = 0;
    for (;;) {
      if (used_ == bytes_) {
        const ssize_t count = uncancelled::read(file_.get(), text_.data(), text_.size());
        if (count <= 0) return false;
        used_ = 0;
        bytes_ = static_cast<std::size_t>(count);
      }
      const char next = text_[used_++];
      if (next == '\n') break;
      if (length < line_.size() - 1) line_[length++] = next;
    }
    line_[length] = 0;
    return true;
  }

  std::uint64_t from_;
  UniqueFd file_;
  bool asks_ = true;
  std::array<char, 4096> text_;  // of the file, from used_ to bytes_
  std::size_t used_ = 0;
  std::size_t bytes_ = 0;
  std::array<char, 128> line_;  // what is wanted of one ends before that
};

}  // namespace

Sharing sharing_of(std::uint64_t address, std::uint64_t length) {
  Mappings mappings(address);
  if (!mappings) return Sharing::unknown;
  const std::uint64_t last = address + (length - 1);
  Mapping mapping;
  while (mappings.next(mapping)) {
    if (mapping.start > address || !mapping.shared) return Sharing::not_shared;
    if (last < mapping.end) return Sharing::all_shared;
    address = mapping.end;
  }
  return Sharing::not_shared;
}

std::optional<FileRange> shared_file_of(std::uint64_t address, std::uint64_t length) {
  Mappings mappings(address);
  Mapping mapping;
  if (!mappings || !mappings.next(mapping)) return std::nullopt;
  if (mapping.start > address || length > mapping.end - address || mapping.inode == 0) return std::nullopt;
  if (!mapping.writable || !mapping.shared) return std::nullopt;
  return FileRange{mapping.device, mapping.inode, mapping.offset + (address - mapping.start)};
}

void AccessMap::open() {
  file_ = open_maps();
  Query found;
  // Memory of this very function is there, so a refusal means that the question is not understood.
  if (file_ && !query(file_.get(), reinterpret_cast<std::uint64_t>(&found), 0, found)) file_.reset();
}

std::uint64_t AccessMap::allowed_until(std::uint64_t address, std::uint64_t length, bool to_write) const {
  const std::uint64_t wanted = to_write ? kWritable : kReadable;
  const std::uint64_t end = address + length;
  while (file_ && address < end) {
    Query found;
    if (!query(file_.get(), address, 0, found)) return errno == ENOENT ? address : end;
    if ((found.mapping_flags & wanted) == 0) return address;
    address = found.end;
  }
  return end;
}

}  // namespace anydat::os
