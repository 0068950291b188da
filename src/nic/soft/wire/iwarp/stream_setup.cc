// SPDX-License-Identifier: BSD-3-Clause
// A connection over TCP: how it is set up.
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/log.h"
#include "nic/service_ports.h"
#include "nic/soft/adapter.h"
#include "nic/soft/addresses.h"
#include "nic/soft/wire/iwarp/caller.h"
#include "nic/soft/wire/iwarp/sockets.h"
#include "nic/soft/wire/iwarp/stream.h"
#include "nic/wanted.h"

namespace anydat::nic::soft::iwarp {

namespace {

// Peers of our kind take segments of any length; others may want each frame in a TCP segment of its own.
constexpr std::uint32_t kUlpduMaxOfOurs = kSegmentHeaderBytesMax + 65'472;
constexpr std::uint32_t kUlpduMin = 512;
// From our answer to the first frame of a peer that has promised one.
constexpr base::Nanoseconds kFirstFramePatience = 10 * base::kNsPerSecond;
// With a peer that has answered the request, and then nothing more; doubled each time.
constexpr base::Nanoseconds kGreetingPatience = 50'000'000;
constexpr base::Nanoseconds kGreetingPatienceMax = base::kNsPerSecond;

std::uint32_t ulpdu_max_of(int fd) {
  int segment = 0;
  socklen_t size = sizeof segment;
  if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &size) != 0 || segment <= 0) return kUlpduMin;
  return std::max(kUlpduMin, static_cast<std::uint32_t>(largest_segment(static_cast<std::size_t>(segment))));
}

// The same at both ends.
base::HiddenOrder order_of(std::uint64_t port, std::uint64_t other) {
  return base::HiddenOrder(port * other);
}

}  // namespace

TcpStream::SetUp::SetUp(TcpStream& of)
    : stream(of), patience(kGreetingPatience), impatience([this] { stream.greet_again(); }) {}

TcpStream::SetUp::~SetUp() {
  stream.fabric_.engine().cancel_timer(impatience);
}

// Also all the memory that the connection will need for it.
void TcpStream::make_offer() {
  const SoftConfig& config = fabric_.adapter().config();
  own_.crc = config.crc == SoftConfig::Crc::on ||
             (config.crc == SoftConfig::Crc::automatic && !device_of(remote_).has_value());
  // One more than the consumer's, for those that only make the peer answer.
  const auto depth = [](std::uint32_t reads) {
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(reads + 1, kReadDepthMax - 1));
  };
  own_.reads_in = depth(queue_pair_.reads_in());
  own_.reads_out = depth(queue_pair_.sends().reads_out());
  responder_.reserve(own_.reads_in + 1u);
  requester_.reserve(own_.reads_out + 2u);
}

Status TcpStream::connect(const ConnectParameters& parameters) {
  active_ = true;
  set_up_ = std::make_unique<SetUp>(*this);
  set_up_->data_bytes = parameters.private_data.size();
  std::copy(parameters.private_data.begin(), parameters.private_data.end(), set_up_->data.begin());
  remote_ = parameters.remote;
  make_offer();
  return look_for(parameters.qual);
}

Status TcpStream::look_for(ConnQual qual) {
  service_ = qual;
  if (is_port(qual)) return dial(remote_, qual);
  auto [reserved, socket] = reserve(fabric_.adapter(), remote_);
  if (reserved != Status::ok) return reserved;
  phase_ = Phase::inquiring;
  const auto [status, inquiry, local] = fabric_.inquire(*this, remote_, qual);
  if (status != Status::ok) return status;
  inquiry_ = inquiry;
  if (local.generic.sa_family != AF_UNSPEC) queue_pair_.connection().set_local(local, port_of(local_end(socket.get())));
  reserved_ = std::move(socket);
  return Status::ok;
}

bool TcpStream::look_again_for(ConnQual qual) {
  try {
    return look_for(qual) == Status::ok;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void TcpStream::inquired(std::uint16_t port, ConnectFailure why) {
  inquiry_ = nullptr;
  if (port == 0) {
    fail(why);
  } else if (!dial_again(port)) {
    fail(ConnectFailure::unreachable);
  }
}

// The outcome comes with a turn or an event of the socket, so never before the call that asked has done its part.
Status TcpStream::dial(const Address& remote, std::uint64_t port) {
  remote_ = with_port(remote, port);
  auto [status, socket] =
      reserved_ ? call(fabric_.adapter(), remote_, std::move(reserved_)) : call(fabric_.adapter(), remote_);
  if (status != Status::ok) return status;
  phase_ = Phase::connecting;
  ended_ = hung_up_ = false;
  if (!socket) {  // refused, which is a report like any other
    fabric_.come_back(turn_);
    return Status::ok;
  }
  if (const Address local = local_end(socket.get()); local.generic.sa_family != AF_UNSPEC) {
    queue_pair_.connection().set_local(local, port_of(local));
  }
  socket_ = std::move(socket);
  if (!fabric_.watch(*this, socket_.get())) {
    socket_.reset();
    return Status::no_memory;
  }
  return Status::ok;
}

bool TcpStream::dial_again(std::uint64_t port) {
  try {
    return dial(remote_, port) == Status::ok;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void TcpStream::fail(ConnectFailure why, std::span<const std::byte> private_data) {
  closed_ = true;
  hang_up();
  queue_pair_.connection().establishment().failed(why, private_data);
}

void TcpStream::dialled() {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) {
    fail(failure_of(error));
    return;
  }
  Address local{};
  Address remote{};
  if (!ends_of(socket_.get(), local, remote)) return;  // not yet
  queue_pair_.connection().set_local(local, port_of(local));
  ask();
}

void TcpStream::ask() {
  phase_ = Phase::asking;
  order_ = order_of(port_of(queue_pair_.names().local), port_of(remote_));
  StartUp frame = request_of(own_, revision_);
  frame.private_data = std::span(set_up_->data).first(set_up_->data_bytes);
  std::optional<WantedBytes> wanted;
  if (!is_port(service_)) {
    frame.private_data = wanted.emplace(write_wanted({Wanted::Kind::connection, service_, frame.private_data}));
  }
  std::array<std::byte, kStartUpBytesMax> bytes;
  const std::size_t count = write_start_up(frame, bytes);
  bool asked = false;
  {
    base::Guard guard(outgoing_.lock());
    outgoing_.line().open(socket_.get(), order_);
    asked = outgoing_.line().send_at_once(std::span(bytes).first(count));
  }
  if (!asked) out_of_memory();
}

std::span<const std::byte> TcpStream::answer_arrived(std::span<const std::byte> bytes) {
  const std::size_t part = std::min(bytes.size(), set_up_->bytes.size() - set_up_->count);
  std::copy_n(bytes.begin(), part, set_up_->bytes.begin() + static_cast<std::ptrdiff_t>(set_up_->count));
  const std::size_t before = set_up_->count;
  set_up_->count += part;
  StartUp answer;
  std::size_t frame_bytes = 0;
  switch (parse_start_up(std::span(set_up_->bytes).first(set_up_->count), true, answer, frame_bytes)) {
    case Parsed::incomplete:
      return {};
    case Parsed::malformed:
      base::log(base::LogLevel::warn, "the program at port {} does not speak iWARP", port_of(remote_));
      fail(ConnectFailure::refused);
      return {};
    case Parsed::whole:
      break;
  }
  if (answer.rejected) {
    rejected(answer);
    return {};
  }
  answered(answer);
  return closed_ ? std::span<const std::byte>{} : bytes.subspan(frame_bytes - before);
}

void TcpStream::rejected(const StartUp& answer) {
  const std::optional<Refusal> refusal = parse_refusal(answer.private_data);
  if (!refusal) {
    fail(ConnectFailure::rejected_by_peer, parse_rejection(answer.private_data));
    return;
  }
  if (refusal->why != Refusal::Why::elsewhere || refusal->qual == 0) {
    fail(ConnectFailure::refused);
    return;
  }
  // CR-HO-3: nobody above notices; the queue pair's deadline keeps running.
  hang_up();
  set_up_->count = 0;
  if (!look_again_for(refusal->qual)) fail(ConnectFailure::unreachable);
}

// What holds for both halves from now on.
void TcpStream::settle(const Terms& terms) {
  requester_.settle(terms);
  reader_.use_crc(terms.crc);
  outgoing_.line().use_crc(terms.crc);
  outgoing_.line().set_ulpdu_max(ulpdu_max_of(socket_.get()));
}

void TcpStream::answered(const StartUp& answer) {
  Terms terms;
  if (!terms_of_asker(answer, own_, terms)) {
    base::log(base::LogLevel::warn, "the peer at port {} wants markers", port_of(remote_));
    fail(ConnectFailure::refused);
    return;
  }
  set_up_->frame = answer;
  phase_ = Phase::greeting;
  first_frame_seen_ = true;
  bool answers = terms.reads_known && terms.reads_out > 0;
  const bool too_much = asks_for_too_much(answer, own_);
  {
    base::Guard guard(outgoing_.lock());
    settle(terms);
  }
  if (too_much) {
    refuse(mpa_error::kInsufficientIrd);
    return;
  }
  {
    base::Guard guard(outgoing_.lock());
    // RFC 6581, section 8: the passive side waits for the first message, in the way it has chosen. A hello is one.
    if (terms.begins_by_frame) outgoing_.line().append_empty_frame();
    if (terms.begins_by_read) requester_.ask_for_nothing();
    say_hello();
    // Whatever the peer is, it answers this; and says hello before, if it is one of ours.
    answers = answers && (terms.begins_by_read || requester_.ask_for_nothing());
    outgoing_.line().flush();
  }
  // What it is stays open: one of ours that was asked again in revision 1 says hello, which its first segment tells.
  if (!answers) {
    expect_of_any_peer();
    greeted(0);
    return;
  }
  fabric_.engine().set_timer(set_up_->impatience, base::now_ns() + set_up_->patience);
}

// Linux's soft-iWARP overlooks what arrives right behind its answer, until something more arrives.
void TcpStream::greet_again() {
  if (phase_ != Phase::greeting || !socket_) return;
  {
    base::Guard guard(outgoing_.lock());
    if (outgoing_.line().idle()) say_hello();
    outgoing_.line().flush();
  }
  set_up_->patience = std::min(2 * set_up_->patience, kGreetingPatienceMax);
  fabric_.engine().set_timer(set_up_->impatience, base::now_ns() + set_up_->patience);
}

// Active side: the peer has let us know what it is.
void TcpStream::established() {
  phase_ = Phase::open;
  {
    base::Guard guard(outgoing_.lock());
    outgoing_.let_send(true);
  }
  // The private data lies in the set-up, which goes.
  const std::unique_ptr<SetUp> kept = std::move(set_up_);
  const std::span<const std::byte> data = kept->frame.private_data;
  queue_pair_.connection().establishment().done(data.first(std::min(data.size(), kPrivateDataMax)));
}

void TcpStream::prepare_to_accept(const StartUp& asked, const Address& remote,
                                  std::span<const std::byte> private_data) {
  remote_ = remote;
  make_offer();
  set_up_ = std::make_unique<SetUp>(*this);
  set_up_->frame = asked;
  set_up_->data_bytes = private_data.size();
  std::copy(private_data.begin(), private_data.end(), set_up_->data.begin());
}

void TcpStream::accept(base::UniqueFd socket) {
  phase_ = Phase::accepting;
  socket_ = std::move(socket);
  if (!socket_ || !fabric_.watch(*this, socket_.get())) {
    // Who is only hung up on may ask once more, in revision 1.
    if (socket_) send_rejection(socket_.get(), set_up_->frame, write_refusal({Refusal::Why::nobody_listens, 0}));
    socket_.reset();
    closed_ = true;
    queue_pair_.connection().establishment().accept_failed();  // CR-ACC-5
    return;
  }
  order_ = order_of(port_of(queue_pair_.names().local), port_of(remote_));
  StartUp frame = answer_to(set_up_->frame, own_);
  frame.private_data = std::span(set_up_->data).first(set_up_->data_bytes);
  std::array<std::byte, kStartUpBytesMax> bytes;
  const std::size_t count = write_start_up(frame, bytes);
  const Terms terms = terms_of_answerer(set_up_->frame, own_);
  bool answered = false;
  {
    base::Guard guard(outgoing_.lock());
    outgoing_.line().open(socket_.get(), order_);
    settle(terms);
    answered = outgoing_.line().send_at_once(std::span(bytes).first(count));
  }
  if (!answered) {
    out_of_memory();
    return;
  }
  set_up_.reset();
  if (terms.peer_begins) {
    queue_pair_.connection().establishment().expect_by(base::now_ns() + kFirstFramePatience);
    return;
  }
  // RFC 5044, section 7.1.2: established, but nothing may be sent before the peer's first frame.
  phase_ = Phase::open;
  expect_of_any_peer();
  queue_pair_.connection().establishment().done({});
}

// The peer has our answer.
void TcpStream::first_frame() {
  first_frame_seen_ = true;
  {
    base::Guard guard(outgoing_.lock());
    outgoing_.let_send(true);
    outgoing_.let_wait();
  }
  if (phase_ == Phase::accepting) {
    phase_ = Phase::open;
    queue_pair_.connection().establishment().done({});
  }
  fabric_.come_back(turn_);
}

// What RFC 5040 has for all who speak it (section 5.3).
void TcpStream::expect_of_any_peer() {
  queue_pair_.sends().set_peer_takes(ability::kInvalidate);
}

void TcpStream::say(Signal signal, std::uint32_t value) {
  say_to(kSignalStag, signal_offset(signal, value));
}

// The passive side's tells its service point's qualifier, and the active side's what it takes. An older end of ours
// looks at neither, and says nothing of what it takes.
void TcpStream::say_hello() {
  if (active_) return say(Signal::hello, queue_pair_.takes() << kHelloTakesAt);
  if (peer_takes_ != 0) say(Signal::takes, queue_pair_.takes());
  const ConnQual qual = queue_pair_.names().local_port;
  if (is_port(qual)) {
    say(Signal::hello, static_cast<std::uint32_t>(qual));
  } else {
    say_to(kServiceStag, qual);
  }
}

// A Write of length 0.
void TcpStream::say_to(std::uint32_t stag, std::uint64_t offset) {
  SegmentHeader header;
  header.opcode = Opcode::write;
  header.last = true;
  header.stag = stag;
  header.tagged_offset = offset;
  if (outgoing_.line().append(header, std::span<const std::byte>{})) return;
  outgoing_.line().give_up();
  fabric_.come_back(turn_);
}

// Its first message tells: ours says hello, and the passive side which service point it is, since a request may have
// been handed on (EP-DUP-1).
void TcpStream::note_peer(Peer peer) {
  {
    base::Guard guard(outgoing_.lock());
    peer_ = peer;
    if (peer == Peer::ours) {
      requester_.peer_is_ours();
      outgoing_.line().set_ulpdu_max(kUlpduMaxOfOurs);
    }
    if (peer == Peer::ours && !active_) {
      say_hello();
      outgoing_.line().flush();
    }
  }
  if (peer == Peer::other) expect_of_any_peer();
}

// The active side has heard it.
void TcpStream::greeted(ConnQual qual) {
  queue_pair_.connection().set_reached({qual != 0 ? qual : service_, {}});
  if (phase_ == Phase::greeting) established();
}

void TcpStream::signalled(std::uint64_t offset) {
  switch (static_cast<Signal>(offset >> 32)) {
    case Signal::hello:
    case Signal::takes:
      return;  // has been noticed
    case Signal::delivered:
      requester_.delivered_up_to(static_cast<std::uint32_t>(offset));
      return;
    case Signal::goodbye: {
      if (said_goodbye_) return;
      said_goodbye_ = true;
      const bool graceful = static_cast<std::uint32_t>(offset) == static_cast<std::uint32_t>(CloseReason::graceful);
      if (!graceful) {
        closed_ = true;
        drop_parked();
      }
      queue_pair_.connection().peer_closed(graceful ? CloseReason::graceful : CloseReason::abrupt);
      return;
    }
  }
}

}  // namespace anydat::nic::soft::iwarp
