// SPDX-License-Identifier: BSD-3-Clause
// A whole connection over TCP against the library: the other host says what the input says, while it is set up and
// afterwards. Whatever that is, the connection ends once, everything that was posted comes back once, no buffer is
// lost, and no memory changes that was not opened for it.
//
// The first byte of an input is what kind of conversation it is (Mode), the second what the program does. The rest are
// bytes of the stream as they are, or records (say_records()) that are made into frames with good lengths and CRCs,
// with keys that no fuzzer could guess filled in.
#include <arpa/inet.h>
#include <dat/udat.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/big_endian.h"
#include "fuzz/fuzz.h"
#include "nic/soft/wire/iwarp/format/mpa.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"

using namespace anydat::nic::soft::iwarp;

namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

constexpr auto kPatience = std::chrono::seconds(30);  // whatever takes longer hangs
constexpr std::size_t kBufferBytes = 64;
constexpr DAT_UINT64 kBufferCount = 8;
constexpr std::size_t kMemoryBytes = 256;
constexpr std::byte kPattern{0x5a};

struct Mode {
  explicit Mode(std::uint8_t byte) : byte_(byte) {}
  bool active() const { return bit(0); }   // the library connects, and the input answers
  bool greeted() const { return bit(1); }  // a good start-up frame comes first
  bool records() const { return bit(2); }
  bool crc() const { return bit(3); }
  bool enhanced() const { return bit(4); }
  bool peer_to_peer() const { return bit(5); }

 private:
  bool bit(int number) const { return (byte_ >> number & 1) != 0; }
  std::uint8_t byte_;
};

void require(DAT_RETURN rc) {
  FUZZ_CHECK(rc == DAT_SUCCESS);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Registered memory.
struct Memory {
  std::array<std::byte, kMemoryBytes> bytes;
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT context = 0;
  DAT_RMR_CONTEXT remote = 0;

  void register_at(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, int rights) {
    DAT_REGION_DESCRIPTION region{};
    region.for_va = bytes.data();
    DAT_VLEN size = 0;
    DAT_VADDR address = 0;
    require(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, bytes.size(), pz, static_cast<DAT_MEM_PRIV_FLAGS>(rights),
                           &lmr, &context, &remote, &size, &address));
  }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(bytes.data()); }
  DAT_LMR_TRIPLET triplet(std::size_t offset, std::size_t length) const {
    DAT_LMR_TRIPLET triplet{};
    triplet.lmr_context = context;
    triplet.virtual_address = address() + offset;
    triplet.segment_length = length;
    return triplet;
  }
};

// What stays from one input to the next.
class World {
 public:
  World() {
    ::setenv("DAT_WIRE", "tcp", 1);
    ::setenv("DAT_LOG", "off", 1);
    char name[] = "soft-lo";
    require(dat_ia_open(name, 8, &async_, &ia));
    require(dat_pz_create(ia, &pz));
    constexpr auto kAll = DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG;
    require(dat_evd_create(ia, 256, DAT_HANDLE_NULL, static_cast<DAT_EVD_FLAGS>(kAll), &events));
    constexpr int kLocal = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
    for (auto& buffer : buffers_) buffer.register_at(ia, pz, kLocal);
    open.register_at(ia, pz, DAT_MEM_PRIV_ALL_FLAG);
    readable.register_at(ia, pz, kLocal | DAT_MEM_PRIV_REMOTE_READ_FLAG);
    freed.register_at(ia, pz, DAT_MEM_PRIV_ALL_FLAG);
    require(dat_lmr_free(freed.lmr));
    const DAT_SRQ_ATTR attr{.max_recv_dtos = kBufferCount, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT};
    DAT_SRQ_ATTR srq_attr = attr;
    require(dat_srq_create(ia, pz, &srq_attr, &srq));
    for (DAT_UINT64 i = 0; i < kBufferCount; ++i) post(i);
    require(dat_psp_create_any(ia, &port, events, DAT_PSP_CONSUMER_FLAG, &psp_));

    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    FUZZ_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(listener, 16) == 0);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    listener_port = ntohs(address.sin_port);
  }

  // Two stretches of each buffer, so that what arrives is scattered.
  void post(DAT_UINT64 number) {
    std::array<DAT_LMR_TRIPLET, 2> segments{buffers_[number].triplet(8, 24), buffers_[number].triplet(100, 40)};
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = number;
    require(dat_srq_post_recv(srq, 2, segments.data(), cookie));
  }

  void refresh() {
    for (Memory* memory : {&open, &readable, &freed}) memory->bytes.fill(kPattern);
    for (Memory& buffer : buffers_) buffer.bytes.fill(kPattern);
  }

  void check() const {
    const auto untouched = [](std::span<const std::byte> bytes) {
      return std::ranges::all_of(bytes, [](std::byte byte) { return byte == kPattern; });
    };
    FUZZ_CHECK(untouched(readable.bytes) && untouched(freed.bytes));
    for (const Memory& buffer : buffers_) {
      const std::span<const std::byte> bytes(buffer.bytes);
      FUZZ_CHECK(untouched(bytes.first(8)) && untouched(bytes.subspan(32, 68)) && untouched(bytes.subspan(140)));
    }
    DAT_SRQ_PARAM param{};
    require(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
    FUZZ_CHECK(param.available_dto_count == static_cast<DAT_COUNT>(kBufferCount));
    FUZZ_CHECK(param.outstanding_dto_count == static_cast<DAT_COUNT>(kBufferCount));
  }

  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE events = DAT_HANDLE_NULL;
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  DAT_CONN_QUAL port = 0;
  int listener = -1;
  std::uint16_t listener_port = 0;
  Memory open;
  Memory readable;
  Memory freed;

 private:
  DAT_EVD_HANDLE async_ = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp_ = DAT_HANDLE_NULL;
  std::array<Memory, kBufferCount> buffers_;
};

class Conversation {
 public:
  Conversation(World& world, Mode mode, std::uint8_t deeds) : world_(world), mode_(mode), deeds_(deeds) {}
  ~Conversation() {
    if (socket_ >= 0) ::close(socket_);
  }

  void run(std::span<const std::byte> input) {
    if (mode_.active()) {
      make_endpoint();
      const sockaddr_in address = loopback(0);
      sockaddr_in copy = address;
      require(dat_ep_connect(ep_, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&copy), world_.listener_port, 10'000'000, 0,
                             nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
      until([&] { return socket_ >= 0 || ended_ > 0; });
    } else {
      socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_in address = loopback(static_cast<std::uint16_t>(world_.port));
      FUZZ_CHECK(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    }
    if (mode_.greeted()) {
      say(greeting());
      // In the enhanced set-up either side waits for the other's first message, and the library may ask for one.
      if (!mode_.enhanced()) {
        until([&] { return established_ || ended_ > 0; });
      } else if (mode_.active()) {
        until([&] { return established_ || ended_ > 0 || sink_ != 0; });
      }
    }
    if (mode_.records()) {
      say_records(input);
    } else {
      say(Bytes(input.begin(), input.end()));
    }
    if (socket_ >= 0) ::shutdown(socket_, SHUT_WR);
    until([&] { return ep_ != DAT_HANDLE_NULL ? ended_ > 0 : hung_up_; });
    finish();
  }

 private:
  Bytes greeting() const {
    StartUp frame;
    frame.reply = mode_.active();
    frame.crc = mode_.crc();
    if (mode_.enhanced()) {
      frame.revision = 2;
      frame.enhanced =
          Enhanced{.ird = 4, .ord = 4, .peer_to_peer = mode_.peer_to_peer(), .rtr_write = true, .rtr_read = true};
    }
    Bytes bytes(kStartUpBytesMax);
    bytes.resize(write_start_up(frame, bytes));
    return bytes;
  }

  // A record: what it is, a length, so many bytes. Bytes as they are, a pause, or a segment.
  void say_records(std::span<const std::byte> input) {
    Bytes gathered;
    while (input.size() >= 2) {
      const auto kind = std::to_integer<unsigned>(input[0]);
      const std::size_t length = std::min(std::to_integer<std::size_t>(input[1]), input.size() - 2);
      const std::span<const std::byte> bytes = input.subspan(2, length);
      input = input.subspan(2 + length);
      if (kind % 8 == 0) {
        gathered.insert(gathered.end(), bytes.begin(), bytes.end());
      } else if (kind % 8 == 1) {
        say(std::exchange(gathered, {}));
        pause();
      } else {
        const Bytes framed = frame(fill_in(bytes));
        gathered.insert(gathered.end(), framed.begin(), framed.end());
      }
    }
    say(gathered);
  }

  Bytes frame(const Bytes& segment) const {
    Bytes bytes(kFrameLengthBytes);
    anydat::base::store_big(bytes.data(), static_cast<std::uint16_t>(segment.size()));
    bytes.insert(bytes.end(), segment.begin(), segment.end());
    bytes.resize(frame_bytes(segment.size()));
    const std::size_t summed = bytes.size() - kCrcBytes;
    store_crc(&bytes[summed], crc32c(0, std::span(bytes).first(summed)));
    return bytes;
  }

  // Small numbers stand for keys, and offsets in their memory count from its start.
  void fill_in(std::byte* stag, std::byte* offset) const {
    const Memory* memory = nullptr;
    switch (anydat::base::load_big<std::uint32_t>(stag)) {
      case 1:
        memory = &world_.open;
        break;
      case 2:
        memory = &world_.readable;
        break;
      case 3:
        memory = &world_.freed;
        break;
      case 4:
        anydat::base::store_big(stag, sink_);
        return;
      default:
        return;
    }
    anydat::base::store_big(stag, memory->remote);
    anydat::base::store_big(offset, anydat::base::load_big<std::uint64_t>(offset) + memory->address());
  }

  Bytes fill_in(std::span<const std::byte> bytes) const {
    Bytes segment(bytes.begin(), bytes.end());
    SegmentHeader header;
    if (parse_segment_header(segment, header)) return segment;
    if (is_tagged(header.opcode)) {
      fill_in(&segment[2], &segment[6]);
    } else if (header.opcode == Opcode::read_request && segment.size() >= kUntaggedHeaderBytes + kReadRequestBytes) {
      fill_in(&segment[kUntaggedHeaderBytes + 16], &segment[kUntaggedHeaderBytes + 20]);
    }
    return segment;
  }

  void say(const Bytes& bytes) {
    std::size_t sent = 0;
    until([&] {
      while (socket_ >= 0 && sent < bytes.size()) {
        const ssize_t count = ::send(socket_, &bytes[sent], bytes.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) return false;
        if (count < 0) return true;  // it has hung up
        sent += static_cast<std::size_t>(count);
      }
      return true;
    });
  }

  template <typename Condition>
  void until(Condition condition) {
    const auto deadline = Clock::now() + kPatience;
    while (!condition()) {
      FUZZ_CHECK(Clock::now() < deadline);
      DAT_EVENT event;
      DAT_COUNT more = 0;
      if (dat_evd_wait(world_.events, 200, 1, &event, &more) == DAT_SUCCESS) handle(event);
      drive();
    }
  }

  // Lets the library do what it has to, most likely.
  void pause() {
    if (++pauses_ > 8) return;
    for (int i = 0; i < 4; ++i) {
      DAT_EVENT event;
      DAT_COUNT more = 0;
      if (dat_evd_wait(world_.events, 200, 1, &event, &more) == DAT_SUCCESS) handle(event);
      drive();
    }
  }

  void drive() {
    DAT_EVENT event;
    while (dat_evd_dequeue(world_.events, &event) == DAT_SUCCESS) handle(event);
    hear();
    const int called = ::accept4(world_.listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (called < 0) return;
    if (mode_.active() && socket_ < 0) {
      socket_ = called;
    } else {
      ::close(called);  // the second try, with another revision, or of an earlier input
    }
  }

  // Looks for the keys of Reads that the library asks for.
  void hear() {
    if (socket_ < 0 || hung_up_) return;
    std::array<std::byte, 4096> some;
    for (;;) {
      const ssize_t count = ::recv(socket_, some.data(), some.size(), MSG_DONTWAIT);
      if (count < 0 && errno == EAGAIN) break;
      if (count <= 0) {
        hung_up_ = true;
        break;
      }
      if (heard_.size() < 1u << 16) heard_.insert(heard_.end(), some.begin(), some.begin() + count);
    }
    std::span<const std::byte> rest = heard_;
    rest = rest.subspan(heard_done_);
    if (heard_done_ == 0) {
      if (rest.size() < kStartUpHeaderBytes) return;
      rest =
          rest.subspan(std::min(rest.size(), kStartUpHeaderBytes + anydat::base::load_big<std::uint16_t>(&rest[18])));
    }
    while (rest.size() > kFrameLengthBytes) {
      const std::size_t bytes = anydat::base::load_big<std::uint16_t>(rest.data());
      if (rest.size() < frame_bytes(bytes)) break;
      SegmentHeader header;
      const auto segment = rest.subspan(kFrameLengthBytes, bytes);
      if (bytes > 0) FUZZ_CHECK(!parse_segment_header(segment, header));
      if (bytes >= kUntaggedHeaderBytes + kReadRequestBytes && header.opcode == Opcode::read_request) {
        sink_ = parse_read_request(segment.subspan(kUntaggedHeaderBytes)).sink_stag;
      }
      rest = rest.subspan(frame_bytes(bytes));
    }
    heard_done_ = heard_.size() - rest.size();
  }

  void make_endpoint() {
    DAT_EP_ATTR attr{};
    attr.service_type = DAT_SERVICE_TYPE_RC;
    attr.max_message_size = attr.max_rdma_size = 1 << 16;
    attr.qos = DAT_QOS_BEST_EFFORT;
    attr.max_recv_dtos = DAT_HW_DEFAULT;
    attr.max_request_dtos = 8;
    attr.max_recv_iov = attr.max_request_iov = attr.max_rdma_read_iov = attr.max_rdma_write_iov = 2;
    attr.max_rdma_read_in = attr.max_rdma_read_out = 2;
    attr.srq_soft_hw = DAT_HW_DEFAULT;
    require(dat_ep_create_with_srq(world_.ia, world_.pz, world_.events, world_.events, world_.events, world_.srq, &attr,
                                   &ep_));
  }

  void handle(const DAT_EVENT& event) {
    switch (event.event_number) {
      case DAT_CONNECTION_REQUEST_EVENT: {
        FUZZ_CHECK(ep_ == DAT_HANDLE_NULL);
        const DAT_CR_HANDLE request = event.event_data.cr_arrival_event_data.cr_handle;
        if ((deeds_ & 1) != 0 && !mode_.greeted()) {
          require(dat_cr_reject(request));
          return;
        }
        make_endpoint();
        require(dat_cr_accept(request, ep_, 0, nullptr));
        return;
      }
      case DAT_CONNECTION_EVENT_ESTABLISHED:
        FUZZ_CHECK(event.event_data.connect_event_data.ep_handle == ep_ && !established_ && ended_ == 0);
        established_ = true;
        act();
        return;
      case DAT_DTO_COMPLETION_EVENT:
        completed(event.event_data.dto_completion_event_data);
        return;
      default:
        FUZZ_CHECK(event.event_data.connect_event_data.ep_handle == ep_);
        ++ended_;
    }
  }

  // What the program does with its connection.
  void act() {
    DAT_LMR_TRIPLET local = world_.open.triplet(0, 32);
    DAT_RMR_TRIPLET remote{};
    remote.rmr_context = 77;
    remote.segment_length = 32;
    const auto post = [&](DAT_RETURN rc) {
      if (rc == DAT_SUCCESS) ++posted_;
    };
    if ((deeds_ & 2) != 0) {
      post(dat_ep_post_rdma_read(ep_, 1, &local, kOurs, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    }
    if ((deeds_ & 4) != 0) {
      post(dat_ep_post_rdma_write(ep_, 1, &local, kOurs, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    }
    if ((deeds_ & 8) != 0) post(dat_ep_post_send(ep_, 1, &local, kOurs, DAT_COMPLETION_DEFAULT_FLAG));
    if ((deeds_ & 16) != 0) {
      post(dat_ep_post_rdma_read(ep_, 1, &local, kOurs, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    }
    if ((deeds_ & 32) != 0) dat_ep_disconnect(ep_, DAT_CLOSE_GRACEFUL_FLAG);
  }

  void completed(const DAT_DTO_COMPLETION_EVENT_DATA& dto) {
    FUZZ_CHECK(dto.ep_handle == ep_);
    if (dto.user_cookie.as_64 == kOurs.as_64) {
      FUZZ_CHECK(posted_ > 0);
      --posted_;
      return;
    }
    FUZZ_CHECK(dto.user_cookie.as_64 < kBufferCount);
    if (dto.status == DAT_DTO_SUCCESS) FUZZ_CHECK(dto.transfered_length <= kBufferBytes);
    world_.post(dto.user_cookie.as_64);
  }

  void finish() {
    drive();
    FUZZ_CHECK(posted_ == 0);
    if (ep_ == DAT_HANDLE_NULL) return;
    FUZZ_CHECK(ended_ == 1);
    require(dat_ep_free(ep_));
  }

  static constexpr DAT_DTO_COOKIE kOurs{.as_64 = kBufferCount};

  World& world_;
  const Mode mode_;
  const std::uint8_t deeds_;
  int socket_ = -1;
  DAT_EP_HANDLE ep_ = DAT_HANDLE_NULL;
  bool established_ = false;
  bool hung_up_ = false;
  int ended_ = 0;
  int posted_ = 0;
  int pauses_ = 0;
  Bytes heard_;
  std::size_t heard_done_ = 0;
  std::uint32_t sink_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World world;
  if (size < 2) return 0;
  world.refresh();
  Conversation(world, Mode(data[0]), data[1]).run(std::as_bytes(std::span(data + 2, size - 2)));
  world.check();
  return 0;
}
