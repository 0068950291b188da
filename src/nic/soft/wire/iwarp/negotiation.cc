// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/negotiation.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "env/log.h"
#include "nic/qualifier_ports.h"
#include "nic/soft/adapter.h"
#include "nic/soft/addresses.h"
#include "nic/soft/wire/iwarp/caller.h"
#include "nic/soft/wire/iwarp/inquiry.h"
#include "nic/soft/wire/iwarp/sockets.h"
#include "nic/soft/wire/iwarp/stream.h"
#include "nic/wanted.h"
#include "os/socket.h"
#include "os/tcp_socket.h"

namespace anydat::nic::soft::iwarp {

namespace {

// Peers of our kind take segments of any length; others may want each frame in a TCP segment of its own.
constexpr std::uint32_t kUlpduMaxOfOurs = kSegmentHeaderBytesMax + 65'472;
constexpr std::uint32_t kUlpduMin = 512;
// From our answer to the first frame of a peer that has promised one.
constexpr os::Nanoseconds kFirstFramePatience = 10 * os::kNsPerSecond;
// With a peer that has answered the request, and then nothing more; doubled each time.
constexpr os::Nanoseconds kGreetingPatience = 50'000'000;
constexpr os::Nanoseconds kGreetingPatienceMax = os::kNsPerSecond;

std::uint32_t ulpdu_max_of(int fd) {
  const std::size_t segment = os::segment_bytes(fd);
  return segment == 0 ? kUlpduMin : std::max(kUlpduMin, static_cast<std::uint32_t>(largest_segment(segment)));
}

// The same at both ends.
base::HiddenOrder order_of(std::uint64_t port, std::uint64_t other) {
  return base::HiddenOrder(port * other);
}

}  // namespace

Negotiation::SetUp::SetUp(Negotiation& of)
    : negotiation(of),
      patience(kGreetingPatience),
      impatience([this] { negotiation.greet_again(); }),
      refusal([this] { negotiation.fail(ConnectFailure::refused); }) {}

Negotiation::SetUp::~SetUp() {
  negotiation.stream_.fabric().engine().cancel_timer(impatience);
  negotiation.stream_.fabric().engine().cancel_timer(refusal);
}

// Also all the memory that the connection will need for it.
void Negotiation::make_offer() {
  const SoftConfig& config = stream_.fabric().adapter().config();
  std::string device;
  own_.crc = config.crc == SoftConfig::Crc::on ||
             (config.crc == SoftConfig::Crc::automatic && device_of(remote_, device) != Status::ok);
  // One more than the consumer's, for those that only make the peer answer.
  const auto depth = [](std::uint32_t reads) {
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(reads + 1, kReadDepthMax - 1));
  };
  own_.reads_in = depth(stream_.queue_pair().reads_in());
  own_.reads_out = depth(stream_.queue_pair().sends().reads_out());
  stream_.responder().reserve(own_.reads_in + 1u);
  stream_.requester().reserve(own_.reads_out + 2u);
}

Status Negotiation::connect(const ConnectParameters& parameters) {
  active_ = true;
  set_up_ = std::make_unique<SetUp>(*this);
  set_up_->data_bytes = parameters.private_data.size();
  std::copy(parameters.private_data.begin(), parameters.private_data.end(), set_up_->data.begin());
  remote_ = parameters.remote;
  make_offer();
  return look_for(parameters.qual);
}

Status Negotiation::look_for(ConnQual qual) {
  service_ = qual;
  stream_.fabric().adapter().strangers().one_calls();
  if (is_port(qual)) return dial(remote_, qual);
  auto [reserved, socket] = reserve(stream_.fabric().adapter(), remote_);
  if (reserved != Status::ok) return reserved;
  phase_ = Phase::inquiring;
  const auto [status, inquiry, local] = stream_.fabric().setups_and_ends().inquire(stream_, remote_, qual);
  if (status != Status::ok) return status;
  inquiry_ = inquiry;
  if (local.generic.sa_family != AF_UNSPEC) {
    stream_.queue_pair().connection().set_local(local, port_of(local_end(socket.get())));
  }
  reserved_ = std::move(socket);
  return Status::ok;
}

bool Negotiation::look_again_for(ConnQual qual) {
  try {
    return look_for(qual) == Status::ok;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Negotiation::inquired(std::uint16_t port, ConnectFailure why) {
  inquiry_ = nullptr;
  if (port == 0) {
    fail(why);
  } else if (!dial_again(port)) {
    fail(ConnectFailure::unreachable);
  }
}

// The outcome comes by time or with an event of the socket, so never before the call that asked has done its part.
Status Negotiation::dial(const Address& remote, std::uint64_t port) {
  if (!stream_.fabric().engine().descriptor_loss().descriptors_are_ours()) return Status::no_memory;
  remote_ = with_port(remote, port);
  auto [status, socket] = reserved_ ? call(stream_.fabric().adapter(), remote_, std::move(reserved_))
                                    : call(stream_.fabric().adapter(), remote_);
  if (status != Status::ok) return status;
  phase_ = Phase::connecting;
  if (!socket) {  // refused, which is a report like any other; it needs no descriptor, and has none that could be lost
    stream_.fabric().engine().set_timer(set_up_->refusal, os::now_ns());
    return Status::ok;
  }
  if (const Address local = local_end(socket.get()); local.generic.sa_family != AF_UNSPEC) {
    stream_.queue_pair().connection().set_local(local, port_of(local));
  }
  if (!stream_.take_socket(std::move(socket))) {
    stream_.drop_socket();
    return Status::no_memory;
  }
  return Status::ok;
}

bool Negotiation::dial_again(std::uint64_t port) {
  try {
    return dial(remote_, port) == Status::ok;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Negotiation::fail(ConnectFailure why, std::span<const std::byte> private_data) {
  stream_.disconnection().set_over();
  stream_.disconnection().hang_up();
  stream_.queue_pair().connection().establishment().failed(why, private_data);
}

void Negotiation::dialled() {
  if (const int error = os::take_error(stream_.socket()); error != 0) {
    fail(failure_of(error));
    return;
  }
  Address local{};
  Address remote{};
  if (!ends_of(stream_.socket(), local, remote)) return;  // not yet
  stream_.queue_pair().connection().set_local(local, port_of(local));
  ask();
}

void Negotiation::ask() {
  phase_ = Phase::asking;
  const base::HiddenOrder order = order_of(port_of(stream_.queue_pair().names().local), port_of(remote_));
  stream_.set_order(order);
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
    OutgoingHalf& outgoing = stream_.outgoing();
    os::Guard guard(outgoing.lock());
    outgoing.line().open(stream_.socket(), order);
    asked = outgoing.line().send_at_once(std::span(bytes).first(count));
  }
  if (!asked) stream_.disconnection().out_of_memory();
}

std::span<const std::byte> Negotiation::answer_arrived(std::span<const std::byte> bytes) {
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
      env::log(env::LogLevel::warn, "the program at port {} does not speak iWARP", port_of(remote_));
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
  return stream_.over() ? std::span<const std::byte>{} : bytes.subspan(frame_bytes - before);
}

void Negotiation::rejected(const StartUp& answer) {
  const std::optional<Refusal> refusal = parse_refusal(answer.private_data);
  if (!refusal) {
    fail(ConnectFailure::rejected_by_peer, parse_rejection(answer.private_data));
    return;
  }
  if (refusal->why != Refusal::Why::elsewhere || refusal->qual == 0) {
    fail(ConnectFailure::refused);
    return;
  }
  // CR-HO-3: the layers above do not notice; the queue pair's deadline keeps running.
  stream_.disconnection().hang_up();
  set_up_->count = 0;
  if (!look_again_for(refusal->qual)) fail(ConnectFailure::unreachable);
}

// What holds for both halves from now on.
void Negotiation::settle(const Terms& terms, Transmitter& line) {
  stream_.requester().settle(terms);
  stream_.reader().use_crc(terms.crc);
  line.use_crc(terms.crc);
  line.set_ulpdu_max(ulpdu_max_of(stream_.socket()));
}

void Negotiation::answered(const StartUp& answer) {
  Terms terms;
  if (!terms_of_asker(answer, own_, terms)) {
    env::log(env::LogLevel::warn, "the peer at port {} wants markers", port_of(remote_));
    fail(ConnectFailure::refused);
    return;
  }
  set_up_->frame = answer;
  phase_ = Phase::greeting;
  first_frame_seen_ = true;
  bool answers = terms.reads_known && terms.reads_out > 0;
  bool broken = false;
  const bool too_much = asks_for_too_much(answer, own_);
  {
    OutgoingHalf& outgoing = stream_.outgoing();
    os::Guard guard(outgoing.lock());
    settle(terms, outgoing.line());
  }
  if (too_much) {
    stream_.disconnection().refuse(mpa_error::kInsufficientIrd);
    return;
  }
  {
    OutgoingHalf& outgoing = stream_.outgoing();
    os::Guard guard(outgoing.lock());
    // RFC 6581, section 8: the passive side waits for the first message, in the way it has chosen. A hello is one.
    const bool begun = (!terms.begins_by_frame || outgoing.line().append_empty_frame()) &&
                       (!terms.begins_by_read || stream_.requester().ask_for_nothing());
    if (!begun) outgoing.line().give_up();
    say_hello(outgoing);
    // Whatever the peer is, it answers this; and says hello before, if it is one of ours.
    answers = answers && (terms.begins_by_read || stream_.requester().ask_for_nothing());
    outgoing.line().flush();
    broken = outgoing.line().broken();
  }
  if (broken) return stream_.disconnection().out_of_memory();
  // What it is stays open: one of ours that was asked again in revision 1 says hello, which its first segment tells.
  if (!answers) {
    expect_of_any_peer();
    greeted(0);
    return;
  }
  stream_.fabric().engine().set_timer(set_up_->impatience, os::now_ns() + set_up_->patience);
}

// Linux's soft-iWARP overlooks what arrives right behind its answer, until something more arrives.
void Negotiation::greet_again() {
  if (phase_ != Phase::greeting || stream_.socket() < 0) return;
  {
    OutgoingHalf& outgoing = stream_.outgoing();
    os::Guard guard(outgoing.lock());
    if (outgoing.line().idle()) say_hello(outgoing);
    outgoing.line().flush();
  }
  set_up_->patience = std::min(2 * set_up_->patience, kGreetingPatienceMax);
  stream_.fabric().engine().set_timer(set_up_->impatience, os::now_ns() + set_up_->patience);
}

// Active side: the peer has let us know what it is.
void Negotiation::established() {
  phase_ = Phase::open;
  {
    OutgoingHalf& outgoing = stream_.outgoing();
    os::Guard guard(outgoing.lock());
    outgoing.let_send(true);
  }
  // The private data lies in the set-up, which goes.
  const std::unique_ptr<SetUp> kept = std::move(set_up_);
  const std::span<const std::byte> data = kept->frame.private_data;
  stream_.queue_pair().connection().establishment().done(data.first(std::min(data.size(), kPrivateDataMax)));
}

void Negotiation::prepare_to_accept(const StartUp& asked, const Address& remote,
                                    std::span<const std::byte> private_data) {
  remote_ = remote;
  make_offer();
  set_up_ = std::make_unique<SetUp>(*this);
  set_up_->frame = asked;
  set_up_->data_bytes = private_data.size();
  std::copy(private_data.begin(), private_data.end(), set_up_->data.begin());
}

void Negotiation::accept(os::UniqueFd socket) {
  phase_ = Phase::accepting;
  if (!stream_.take_socket(std::move(socket))) {
    // Who is only hung up on may ask once more, in revision 1.
    if (stream_.socket() >= 0 && stream_.fabric().engine().descriptor_loss().descriptors_are_ours()) {
      send_rejection(stream_.socket(), set_up_->frame, write_refusal({Refusal::Why::nobody_listens, 0}));
    }
    stream_.drop_socket();
    stream_.disconnection().set_over();
    stream_.queue_pair().connection().establishment().accept_failed();  // CR-ACC-5
    return;
  }
  const base::HiddenOrder order = order_of(port_of(stream_.queue_pair().names().local), port_of(remote_));
  stream_.set_order(order);
  StartUp frame = answer_to(set_up_->frame, own_);
  frame.private_data = std::span(set_up_->data).first(set_up_->data_bytes);
  std::array<std::byte, kStartUpBytesMax> bytes;
  const std::size_t count = write_start_up(frame, bytes);
  const Terms terms = terms_of_answerer(set_up_->frame, own_);
  bool answered = false;
  {
    OutgoingHalf& outgoing = stream_.outgoing();
    os::Guard guard(outgoing.lock());
    outgoing.line().open(stream_.socket(), order);
    settle(terms, outgoing.line());
    answered = outgoing.line().send_at_once(std::span(bytes).first(count));
  }
  if (!answered) {
    stream_.disconnection().out_of_memory();
    return;
  }
  set_up_.reset();
  if (terms.peer_begins) {
    stream_.queue_pair().connection().establishment().expect_by(os::now_ns() + kFirstFramePatience);
    return;
  }
  // RFC 5044, section 7.1.2: established, but nothing may be sent before the peer's first frame.
  phase_ = Phase::open;
  expect_of_any_peer();
  stream_.queue_pair().connection().establishment().done({});
}

void Negotiation::hung_up_on() {
  // RFC 6581, section 7: who knows revision 1 only may hang up on the other. Ours does when it has no descriptor
  // for whom it turns away.
  if (revision_ > 1 && set_up_->count == 0 && is_port(service_)) {
    revision_ = 1;
    stream_.disconnection().hang_up();
    if (dial_again(port_of(remote_))) return;
  }
  fail(ConnectFailure::refused);
}

void Negotiation::abandon() {
  if (inquiry_) std::exchange(inquiry_, nullptr)->abandon();
  if (set_up_) stream_.fabric().engine().cancel_timer(set_up_->refusal);
  reserved_.reset();
}

// ---- the peer's first messages

void Negotiation::empty_frame_arrived() {
  expect_of_any_peer();  // none of ours begins so
  first_frame();
}

void Negotiation::first_segment_begins(const SegmentHeader& segment, std::size_t payload_bytes) {
  // What the peer takes is known when the connection stands (D2-EXT-8), so a hello is heard first.
  // The first frame of one of ours: a Write of length 0 that only says so.
  const bool hello =
      segment.opcode == Opcode::write && payload_bytes == 0 &&
      (segment.stag == kServiceStag ||
       (segment.stag == kSignalStag && segment.tagged_offset >> 32 == static_cast<std::uint32_t>(Signal::hello)));
  if (hello || segment.opcode == Opcode::terminate) return;  // which ends what has not begun
  expect_of_any_peer();
  first_frame();
}

// A peer that sends before its hello is none of ours, and there is nothing left to wait for. A message has its
// receive with a connection that stands, which it may end (STAT-18): what it fails for would end nothing before.
void Negotiation::greeted_by_send() {
  note_peer(Peer::other);
  greeted(0);
}

bool Negotiation::hear(const SegmentHeader& segment, std::size_t payload_bytes) {
  const bool empty_write = segment.opcode == Opcode::write && payload_bytes == 0;
  const bool of_port = empty_write && segment.stag == kSignalStag &&
                       segment.tagged_offset >> 32 == static_cast<std::uint32_t>(Signal::hello);
  const bool of_service = empty_write && segment.stag == kServiceStag;
  // Before its hello; the sides differ in how they tell.
  if (active_ && empty_write && segment.stag == kSignalStag &&
      segment.tagged_offset >> 32 == static_cast<std::uint32_t>(Signal::takes)) {
    peer_takes_ = static_cast<std::uint32_t>(segment.tagged_offset);
    stream_.queue_pair().sends().set_peer_takes(peer_takes_);
    return true;
  }
  if (of_port && !active_) {
    peer_takes_ = static_cast<std::uint32_t>(segment.tagged_offset) >> kHelloTakesAt;
    stream_.queue_pair().sends().set_peer_takes(peer_takes_);
  }
  // Before first_frame(), after which another thread may send: our hello is the first that a peer of ours hears.
  note_peer(of_port || of_service ? Peer::ours : Peer::other);
  if (!first_frame_seen_) first_frame();
  if (stream_.over()) return true;
  // In revision 1 the connection stands before it is heard who has got the request.
  if (phase_ == Phase::greeting || (active_ && (of_port || of_service))) {
    greeted(of_port ? segment.tagged_offset & 0xffff : of_service ? segment.tagged_offset : 0);
    if (stream_.over()) return true;
  }
  return false;
}

// The peer has our answer.
void Negotiation::first_frame() {
  first_frame_seen_ = true;
  {
    OutgoingHalf& outgoing = stream_.outgoing();
    os::Guard guard(outgoing.lock());
    outgoing.let_send(true);
    outgoing.let_wait();
  }
  if (phase_ == Phase::accepting) {
    phase_ = Phase::open;
    stream_.queue_pair().connection().establishment().done({});
  }
  stream_.fabric().schedule_turn(stream_.reading_turn());
}

// What RFC 5040 has for all who speak it (section 5.3).
void Negotiation::expect_of_any_peer() {
  stream_.queue_pair().sends().set_peer_takes(ability::kInvalidate);
}

// The passive side's tells its service point's qualifier, and the active side's what it takes. An older end of ours
// looks at neither, and says nothing of what it takes.
void Negotiation::say_hello(OutgoingHalf& outgoing) {
  if (active_) return outgoing.say(Signal::hello, stream_.queue_pair().takes() << kHelloTakesAt);
  if (peer_takes_ != 0) outgoing.say(Signal::takes, stream_.queue_pair().takes());
  const ConnQual qual = stream_.queue_pair().names().local_port;
  if (is_port(qual)) {
    outgoing.say(Signal::hello, static_cast<std::uint32_t>(qual));
  } else {
    outgoing.say_to(kServiceStag, qual);
  }
}

// Its first message tells: ours says hello, and the passive side which service point it is, since a request may have
// been handed on (EP-DUP-1).
void Negotiation::note_peer(Peer peer) {
  {
    OutgoingHalf& outgoing = stream_.outgoing();
    os::Guard guard(outgoing.lock());
    peer_ = peer;
    if (peer == Peer::ours) {
      stream_.requester().peer_is_ours();
      outgoing.line().set_ulpdu_max(kUlpduMaxOfOurs);
    }
    if (peer == Peer::ours && !active_) {
      say_hello(outgoing);
      outgoing.line().flush();
    }
  }
  if (peer == Peer::other) expect_of_any_peer();
}

// The active side has heard it.
void Negotiation::greeted(ConnQual qual) {
  stream_.queue_pair().connection().set_reached({qual != 0 ? qual : service_, {}});
  if (phase_ == Phase::greeting) established();
}

}  // namespace anydat::nic::soft::iwarp
