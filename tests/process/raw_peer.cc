// SPDX-License-Identifier: BSD-3-Clause
#include "raw_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "nic/region_table.h"

namespace anydat::test {

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

std::string raw_service_name(DAT_CONN_QUAL qualifier) {
  return fmt::format("anydat/{}/{}/lo/{}", shm::kVersion, ::geteuid(), static_cast<unsigned long long>(qualifier));
}

Fd make_segment(const SegmentRecipe& recipe) {
  Fd fd;
  if (recipe.memfd) {
    fd = Fd(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  } else {
    std::string name = "/tmp/anydat-hostile-XXXXXX";
    fd = Fd(::mkstemp(name.data()));
    ::unlink(name.c_str());
  }
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(recipe.bytes)) != 0) {
    throw std::runtime_error("no file for a segment");
  }
  shm::SegmentHeader header{};
  header.magic = recipe.magic;
  header.version = recipe.version;
  header.segment_bytes = recipe.claimed_bytes;
  if (recipe.bytes >= sizeof header && ::pwrite(fd.get(), &header, sizeof header, 0) < 0) {
    throw std::runtime_error("cannot write a segment's header");
  }
  if (recipe.memfd && recipe.sealed) {
    ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  }
  return fd;
}

Fd make_region_table() {
  Fd fd = make_segment({.bytes = nic::RegionView::kBytes});
  const std::uint64_t magic = nic::kRegionTableMagic;
  if (::pwrite(fd.get(), &magic, sizeof magic, offsetof(nic::RegionEntry, length)) != sizeof magic) {
    throw std::runtime_error("cannot write a table's first entry");
  }
  return fd;
}

Fd make_marks() {
  return make_segment({.bytes = shm::kMarkBytes});
}

RawSegment::RawSegment(int fd) {
  constexpr std::size_t kPage = 4096;
  const auto map = [fd](std::size_t bytes) {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  };
  void* memory = map(shm::kSegmentBytes);
  // There is no leave to lock as much. What grows out of memory that is not locked is not, either.
  if (memory == MAP_FAILED && errno == EAGAIN) {
    void* const first = map(kPage);
    if (first != MAP_FAILED && ::munlock(first, kPage) == 0)
      memory = ::mremap(first, kPage, shm::kSegmentBytes, MREMAP_MAYMOVE);
  }
  memory_ = memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

RawSegment::RawSegment(RawSegment&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}

RawSegment& RawSegment::operator=(RawSegment&& other) noexcept {
  std::swap(memory_, other.memory_);
  return *this;
}

RawSegment::~RawSegment() {
  if (memory_ != nullptr) {
    ::munmap(memory_, shm::kSegmentBytes);
  }
}

// Each is an adapter instance of its own.
RawPeer::Node RawPeer::new_node() {
  static std::uint64_t last = static_cast<std::uint64_t>(::getpid()) << 32;
  ++last;
  Node node{};
  std::memcpy(node.data(), &last, sizeof last);
  return node;
}

void RawPeer::claim_to_be(const shm::Greeting& greeting) {
  std::memcpy(node_.data(), greeting.node, node_.size());
}

RawPeer::RawPeer(const std::string& service) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, service.data(), service.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + service.size());
  if (!socket_ || ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
    throw std::runtime_error("nobody listens at " + service);
  }
}

bool RawPeer::send_bytes(std::span<const std::byte> bytes, const std::vector<int>& descriptors) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

bool RawPeer::greet(shm::GreetingKind kind, const std::vector<int>& descriptors) {
  shm::Greeting greeting{};
  greeting.magic = shm::kMagic;
  greeting.version = shm::kVersion;
  greeting.kind = kind;
  std::memcpy(greeting.node, node_.data(), node_.size());
  return send_bytes(bytes_of(greeting), descriptors);
}

std::optional<RawPeer::Heard> RawPeer::hear(std::chrono::milliseconds timeout) {
  pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, static_cast<int>(timeout.count())) <= 0) {
    return std::nullopt;
  }
  Heard heard{};
  iovec part{&heard.greeting, sizeof heard.greeting};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = CMSG_LEN(sizeof(int));  // and not one more, for which the padding has room
  if (::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof heard.greeting) {
    return std::nullopt;
  }
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    heard.descriptor = Fd(fd);
  }
  return heard;
}

bool RawPeer::cut(std::chrono::milliseconds timeout) {
  return eventually(
      [this] {
        std::array<char, 256> buffer;
        ssize_t count = 0;
        do {
          count = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        } while (count > 0);
        return count == 0 || (errno != EAGAIN && errno != EINTR);
      },
      timeout);
}

void RawPeer::show_memory(const RawSegment& inbound) const {
  static const std::uint64_t probe = 0x1234567890abcdef;
  if (!offers_memory_) return;
  inbound.header().probe_address = reinterpret_cast<std::uint64_t>(&probe);
  inbound.header().probe_value = probe;
  inbound.header().probe_thread = static_cast<std::uint32_t>(::getpid());
}

bool RawPeer::shake_hands() {
  if (!greet(shm::GreetingKind::hello) || !hear()) {
    return false;
  }
  const Fd own = make_segment({});
  RawSegment inbound(own.get());
  show_memory(inbound);
  const Fd regions = make_region_table();
  const Fd marks = make_marks();
  if (!greet(shm::GreetingKind::attach, {own.get(), regions.get(), marks.get()})) {
    return false;
  }
  const auto attached = hear();
  if (!attached || !attached->descriptor) {
    return false;
  }
  use(std::move(inbound), RawSegment(attached->descriptor.get()));
  return static_cast<bool>(inbound_) && static_cast<bool>(outbound_);
}

void RawPeer::use(RawSegment inbound, RawSegment outbound) {
  inbound_ = std::move(inbound);
  outbound_ = std::move(outbound);
}

void RawPeer::put(const RawCell& cell) {
  const std::uint32_t needed = shm::cells_for(cell.body.size());
  std::uint32_t index = produced_ % shm::kCellCount;
  if (index + needed > shm::kCellCount) {
    auto* pad = reinterpret_cast<shm::CellHeader*>(outbound_.cells().data() + index * shm::kCellBytes);
    pad->ready.store(shm::pack_ready(shm::CellKind::pad, 0, shm::kCellCount - index), std::memory_order_release);
    produced_ += shm::kCellCount - index;
    index = 0;
  }
  std::byte* place = outbound_.cells().data() + index * shm::kCellBytes;
  const std::uint32_t next = (index + needed) % shm::kCellCount;
  reinterpret_cast<shm::CellHeader*>(outbound_.cells().data() + next * shm::kCellBytes)->ready.store(0);
  std::copy(cell.body.begin(), cell.body.end(), place + shm::kCellHeaderBytes);
  auto* header = reinterpret_cast<shm::CellHeader*>(place);
  header->length = cell.length.value_or(static_cast<std::uint32_t>(cell.body.size()));
  header->connection = cell.connection;
  header->aux = cell.aux;
  header->ready.store(shm::pack_ready(cell.kind, cell.flags, cell.cells.value_or(needed)), std::memory_order_release);
  produced_ += needed;
}

void RawPeer::ring() {
  const std::byte bell{};
  [[maybe_unused]] const auto sent = ::send(socket_.get(), &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::optional<RawPeer::Message> RawPeer::take(std::chrono::milliseconds timeout) {
  std::optional<Message> message;
  eventually(
      [&] {
        const std::uint32_t index = consumed_ % shm::kCellCount;
        const std::byte* place = inbound_.cells().data() + index * shm::kCellBytes;
        const auto* header = reinterpret_cast<const shm::CellHeader*>(place);
        const std::uint32_t ready = header->ready.load(std::memory_order_acquire);
        if (ready == 0) {
          return false;
        }
        const std::uint32_t cells = ready >> 16;
        consumed_ += cells;
        inbound_.header().cells_consumed.store(consumed_, std::memory_order_release);
        const auto kind = static_cast<shm::CellKind>(ready & 0xff);
        if (kind == shm::CellKind::pad) {
          return false;
        }
        const std::byte* body = place + shm::kCellHeaderBytes;
        message = Message{.kind = kind,
                          .length = header->length,
                          .connection = header->connection,
                          .aux = header->aux,
                          .body = {body, body + cells * shm::kCellBytes - shm::kCellHeaderBytes}};
        return true;
      },
      timeout);
  return message;
}

std::uint32_t RawPeer::connect(DAT_CONN_QUAL qualifier, std::uint32_t connection,
                               std::span<const std::byte> private_data) {
  shm::ConnectBody body = connect_body(qualifier, connection);
  body.private_data_bytes = static_cast<std::uint32_t>(private_data.size());
  std::copy(private_data.begin(), private_data.end(), body.private_data);
  put({.kind = shm::CellKind::connect, .body = bytes_of(body)});
  ring();
  const auto answer = take();
  if (!answer || answer->kind != shm::CellKind::accept) {
    return 0;
  }
  shm::AcceptBody accepted{};
  std::memcpy(&accepted, answer->body.data(), sizeof accepted);
  put({.kind = shm::CellKind::ready, .connection = accepted.connection});
  ring();
  return accepted.connection;
}

shm::ConnectBody connect_body(DAT_CONN_QUAL qualifier, std::uint32_t connection) {
  shm::ConnectBody body{};
  for (nic::Address* address : {&body.remote, &body.local}) {
    address->v4.sin_family = AF_INET;
    address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  body.remote_port = 50000;
  body.qual = qualifier;
  body.connection = connection;
  return body;
}

}  // namespace anydat::test
