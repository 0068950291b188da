// SPDX-License-Identifier: BSD-3-Clause
#include "face20/both/conversation.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr std::size_t kHalf = 100'000;  // more than goes into cells
constexpr std::string_view kQuestion = "what do you say?";
constexpr std::string_view kYes = "yes";

// What the caller tells of its memory; no triplet, which each version lays out its own way.
struct Memory {
  DAT_UINT64 address;
  DAT_UINT64 context;
};

std::byte byte_at(std::size_t i, unsigned seed) {
  return static_cast<std::byte>(i * 7 + seed);
}
void fill(std::span<std::byte> bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(i, seed);
}
bool filled(std::span<const std::byte> bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != byte_at(i, seed)) return false;
  }
  return true;
}

DAT_RETURN reject(DAT_CR_HANDLE request) {
#if DAT_VERSION_MAJOR >= 2
  char reason[] = "not now";
  return dat_cr_reject(request, sizeof reason, reason);
#else
  return dat_cr_reject(request);
#endif
}

DAT_CR_HANDLE question_of_peer(Side& side) {
  const DAT_EVENT event = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  const DAT_CR_HANDLE request = event.event_data.cr_arrival_event_data.cr_handle;
  DAT_CR_PARAM param{};
  require(dat_cr_query(request, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
  EXPECT_EQ(
      std::string_view(static_cast<const char*>(param.private_data), static_cast<std::size_t>(param.private_data_size)),
      kQuestion);
  return request;
}

DAT_CONNECTION_EVENT_DATA ask(Side& side, const Ep& ep, DAT_CONN_QUAL qualifier, DAT_EVENT_NUMBER answer) {
  std::string question(kQuestion);
  require(dat_ep_connect(ep.get(), loopback(), qualifier, 60'000'000, static_cast<DAT_COUNT>(question.size()),
                         question.data(), DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  return expect_event(side.connect.get(), answer).event_data.connect_event_data;
}

void post_recv(const Ep& ep, const Lmr& lmr) {
  DAT_LMR_TRIPLET segment = lmr.triplet();
  require(dat_ep_post_recv(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
}

void send(Side& side, const Ep& ep, const Lmr& lmr) {
  DAT_LMR_TRIPLET segment = lmr.triplet();
  require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  EXPECT_EQ(expect_completion(side.request.get()).transfered_length, lmr.bytes().size());
}

}  // namespace

void serve_conversation(const Wire& wire, const std::function<void(const std::string&)>& tell) {
  Side side(wire);
  tell(std::to_string(side.listen()));
  require(reject(question_of_peer(side)), "dat_cr_reject");

  const Lmr note(side.ia, side.pz, sizeof(Memory));
  const Lmr own(side.ia, side.pz, kHalf);
  const Ep ep(side);
  post_recv(ep, note);
  std::string yes(kYes);
  require(dat_cr_accept(question_of_peer(side), ep.get(), static_cast<DAT_COUNT>(yes.size()), yes.data()),
          "dat_cr_accept");
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(expect_completion(side.recv.get()).transfered_length, sizeof(Memory));
  Memory named{};
  std::memcpy(&named, note.bytes().data(), sizeof named);

  DAT_LMR_TRIPLET segment = own.triplet();
  DAT_RMR_TRIPLET remote{};
  remote.rmr_context = static_cast<DAT_RMR_CONTEXT>(named.context);
  remote.target_address = named.address;
  remote.segment_length = kHalf;
  require(dat_ep_post_rdma_read(ep.get(), 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG), "rdma_read");
  EXPECT_EQ(expect_completion(side.request.get()).transfered_length, kHalf);
  EXPECT_TRUE(filled(own.bytes(), 1));
  fill(own.bytes(), 2);
  remote.target_address = named.address + kHalf;
  require(dat_ep_post_rdma_write(ep.get(), 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG), "rdma_write");
  EXPECT_EQ(expect_completion(side.request.get()).transfered_length, kHalf);
  send(side, ep, own);  // a long message behind the Write
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

void serve_invalidation(const Wire& wire, const std::function<void(const std::string&)>& tell) {
  Side side(wire);
  tell(std::to_string(side.listen()));
  const Lmr region(side.ia, side.pz, 64);
  const Lmr sink(side.ia, side.pz, 64);
  const Ep ep(side);
  post_recv(ep, sink);
  require(dat_cr_accept(question_of_peer(side), ep.get(), 0, nullptr), "dat_cr_accept");
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  tell(std::to_string(region.rmr_context()));
  EXPECT_EQ(expect_event(side.recv.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data.status,
            DAT_DTO_ERR_FLUSHED);
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_TRUE(std::ranges::all_of(sink.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
}

void call_for_conversation(const Wire& wire, const std::string& qualifier) {
  const auto number = static_cast<DAT_CONN_QUAL>(std::stoull(qualifier));
  Side side(wire);
  {
    const Ep ep(side);
    // D2-CR-4: one of the two knows no private data in a rejection.
    EXPECT_EQ(ask(side, ep, number, DAT_CONNECTION_EVENT_PEER_REJECTED).private_data_size, 0);
  }
  const Lmr memory(side.ia, side.pz, 2 * kHalf);
  const Lmr answer(side.ia, side.pz, kHalf);
  const Lmr note(side.ia, side.pz, sizeof(Memory));
  const Ep ep(side);
  post_recv(ep, answer);
  const DAT_CONNECTION_EVENT_DATA accepted = ask(side, ep, number, DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(std::string_view(static_cast<const char*>(accepted.private_data),
                             static_cast<std::size_t>(accepted.private_data_size)),
            kYes);
  fill(memory.bytes().first(kHalf), 1);
  const Memory named{reinterpret_cast<std::uintptr_t>(memory.bytes().data()), memory.rmr_context()};
  std::memcpy(note.bytes().data(), &named, sizeof named);
  send(side, ep, note);
  EXPECT_EQ(expect_completion(side.recv.get()).transfered_length, kHalf);
  EXPECT_TRUE(filled(answer.bytes(), 2));
  EXPECT_TRUE(filled(memory.bytes().subspan(kHalf), 2));
  require(dat_ep_disconnect(ep.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

namespace {

const Role kInvalidated("serves an invalidation", [](RoleContext& context) {
  serve_invalidation(context.wire, [&](const std::string& what) { context.parent.say(what); });
});
const Role kServer("serves a conversation", [](RoleContext& context) {
  serve_conversation(context.wire, [&](const std::string& qualifier) { context.parent.say(qualifier); });
});
const Role kCaller("calls for a conversation",
                   [](RoleContext& context) { call_for_conversation(context.wire, context.arguments.at(0)); });

#if DAT_VERSION_MAJOR == 1
// What the two versions say to each other, two programs of 1.2 do.
class Conversation : public testing::TestWithParam<Wire> {};
INSTANTIATE_TEST_SUITE_P(Wires, Conversation, testing::ValuesIn(all_wires()), wire_name);

TEST_P(Conversation, OfTwoProgramsOf12) {
  PeerProcess server("serves a conversation", GetParam());
  call_for_conversation(GetParam(), server.channel().hear());
  EXPECT_EQ(server.wait_exit(), 0) << "what it says stands above";
}
#endif

}  // namespace
}  // namespace anydat::test
