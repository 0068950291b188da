// SPDX-License-Identifier: BSD-3-Clause
#include "base/memory_map.h"

#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <memory>

namespace anydat::base {

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
constexpr std::uint64_t kWritable = 0x02;
constexpr std::uint64_t kShared = 0x08;
constexpr std::uint64_t kThisOrNext = 0x10;

// The mappings from an address on, in order.
class Mappings {
 public:
  explicit Mappings(std::uint64_t from) : from_(from), file_(std::fopen("/proc/self/maps", "rec")) {}
  explicit operator bool() const { return file_ != nullptr; }

  bool next(Mapping& mapping) {
    if (asks_) {
      if (ask(mapping)) return true;
      if (errno != ENOTTY && errno != EINVAL && errno != EPERM && errno != EACCES) return false;
      asks_ = false;
    }
    return read(mapping);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  bool ask(Mapping& mapping) {
    Query query{};
    query.size = sizeof query;
    query.flags = kThisOrNext;
    query.address = from_;
    if (ioctl(fileno(file_.get()), kQuery, &query) != 0) return false;
    mapping = {query.start,
               query.end,
               (query.mapping_flags & kWritable) != 0,
               (query.mapping_flags & kShared) != 0,
               query.offset,
               makedev(query.device_major, query.device_minor),
               query.inode};
    from_ = query.end;
    return true;
  }

  // Lines are sorted by address. No more is read of each than is needed, since the path at its end may be of any
  // length.
  bool read(Mapping& mapping) {
    unsigned major_number = 0, minor_number = 0;
    std::uint64_t inode = 0;
    char permissions[5];
    while (std::fscanf(file_.get(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%*[^\n]", &mapping.start,
                       &mapping.end, permissions, &mapping.offset, &major_number, &minor_number, &inode) == 7) {
      if (mapping.end <= from_) continue;
      mapping.writable = permissions[1] == 'w';
      mapping.shared = permissions[3] == 's';
      mapping.device = makedev(major_number, minor_number);
      mapping.inode = inode;
      return true;
    }
    return false;
  }

  std::uint64_t from_;
  std::unique_ptr<std::FILE, Close> file_;
  bool asks_ = true;
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

}  // namespace anydat::base
