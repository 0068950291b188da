// SPDX-License-Identifier: BSD-3-Clause
#include "party.h"

#include <anydat/anydat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

std::byte byte_at(std::size_t i, unsigned seed) {
  return static_cast<std::byte>(i * 7 + i / 251 + seed);
}

class Shareable {
 public:
  explicit Shareable(std::size_t bytes) : bytes_(bytes) {
    require(anydat_alloc_shareable(bytes, &memory_), "anydat_alloc_shareable");
  }
  ~Shareable() { EXPECT_THAT(anydat_free_shareable(memory_), Succeeds()); }
  Shareable(const Shareable&) = delete;
  Shareable& operator=(const Shareable&) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), bytes_}; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

int failures_in_module() {
  return testing::UnitTest::GetInstance()->ad_hoc_test_result().total_part_count();
}

class PartyOfThisVersion : public Party {
 public:
  explicit PartyOfThisVersion(const Wire& wire) : objects_(std::in_place, wire) {}

  std::uint64_t listen() override { return objects_->side.listen(); }
  bool listen_at(std::uint64_t qualifier) override {
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_psp_create(ia(), qualifier, objects_->side.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp);
    if (rc != DAT_SUCCESS) {
      EXPECT_THAT(rc, HasType(DAT_CONN_QUAL_IN_USE));
      return false;
    }
    objects_->psp = Owner<dat_psp_free>(psp);
    return true;
  }
  void call(std::uint64_t qualifier) override {
    require(dat_ep_connect(ep(), loopback(), qualifier, 60'000'000, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
  }
  void accept() override {
    const DAT_EVENT request = expect_event(objects_->side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep(), 0, nullptr), "dat_cr_accept");
  }
  std::string next_event() override {
    const std::optional<DAT_EVENT> event = wait_event(objects_->side.connect.get());
    return event ? event_name(event->event_number) : "none";
  }

  void offer_buffer() override {
    DAT_LMR_TRIPLET segment = objects_->inbox.triplet();
    require(dat_ep_post_recv(ep(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }
  // By our own call, whose name the libraries of both versions have.
  void send(std::size_t bytes, unsigned seed) override {
    make(objects_->outbox.bytes().first(bytes), seed);
    DAT_LMR_TRIPLET segment = objects_->outbox.triplet(0, bytes);
    const ANYDAT_EP_POST post{1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG};
    DAT_COUNT posted = 0;
    require(anydat_ep_post_sends(ep(), 1, &post, &posted), "anydat_ep_post_sends");
    EXPECT_EQ(posted, 1);
    EXPECT_EQ(expect_completion(objects_->side.request.get()).transfered_length, bytes);
    ++sent_;
  }
  void receive(std::size_t bytes, unsigned seed) override {
    EXPECT_EQ(expect_completion(objects_->side.recv.get()).transfered_length, bytes);
    EXPECT_TRUE(are(objects_->inbox.bytes().first(bytes), seed)) << bytes;
  }
  Place place(Memory memory) override {
    const Lmr& lmr = of(memory);
    return {reinterpret_cast<std::uintptr_t>(lmr.bytes().data()), lmr.rmr_context()};
  }
  void fill(Memory memory, std::size_t bytes, unsigned seed) override { make(of(memory).bytes().first(bytes), seed); }
  bool holds(Memory memory, std::size_t bytes, unsigned seed) override {
    return are(of(memory).bytes().first(bytes), seed);
  }
  void write(const Place& to, std::size_t bytes, unsigned seed) override {
    make(objects_->outbox.bytes().first(bytes), seed);
    DAT_LMR_TRIPLET segment = objects_->outbox.triplet(0, bytes);
    const DAT_RMR_TRIPLET remote = remote_of(to, bytes);
    require(dat_ep_post_rdma_write(ep(), 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG), "rdma_write");
    EXPECT_EQ(expect_completion(objects_->side.request.get()).transfered_length, bytes);
  }
  void read(const Place& from, std::size_t bytes, unsigned seed) override {
    std::ranges::fill(objects_->outbox.bytes(), std::byte{});
    DAT_LMR_TRIPLET segment = objects_->outbox.triplet(0, bytes);
    const DAT_RMR_TRIPLET remote = remote_of(from, bytes);
    require(dat_ep_post_rdma_read(ep(), 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG), "rdma_read");
    EXPECT_EQ(expect_completion(objects_->side.request.get()).transfered_length, bytes);
    EXPECT_TRUE(are(objects_->outbox.bytes().first(bytes), seed)) << bytes;
  }

  bool knows_its_objects() override {
    const Side& side = objects_->side;
    int refused = 0;
    const std::array handles{ep(), side.recv.get(), side.pz.get(), ia(), objects_->heap.get()};
    for (const DAT_HANDLE handle : handles) {
      DAT_HANDLE_TYPE type{};
      const DAT_RETURN rc = dat_get_handle_type(handle, &type);
      if (rc == DAT_SUCCESS) continue;
      EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
      ++refused;
    }
    EXPECT_TRUE(refused == 0 || refused == static_cast<int>(handles.size())) << refused;
    return refused == 0;
  }
  std::string wire() override {
    const char* name = "";
    require(anydat_ep_wire(ep(), &name), "anydat_ep_wire");
    return name;
  }
  bool counts_its_own() override {
    std::array<ANYDAT_COUNTER, 64> counters{};
    DAT_COUNT count = 0;
    require(anydat_get_counters(ep(), static_cast<DAT_COUNT>(counters.size()), counters.data(), &count),
            "anydat_get_counters");
    for (const ANYDAT_COUNTER& counter : std::span(counters).first(static_cast<std::size_t>(count))) {
      if (std::strcmp(counter.name, "sends") == 0) return counter.value == sent_;
    }
    return false;
  }
  std::string last_refusal() override {
    EXPECT_THAT(dat_pz_free(ep()), HasType(DAT_INVALID_HANDLE));
    return anydat_last_error();
  }
  void leave_abruptly() override {
    require(objects_->side.ia.close(DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
    objects_->forget();
    objects_.reset();
  }
  bool well() const override { return failures_in_module() == failures_before_; }

 private:
  struct Objects {
    explicit Objects(const Wire& wire)
        : side(wire),
          shared(kBytes),
          heap(side.ia, side.pz, kBytes),
          mapped(side.ia, side.pz, shared.bytes()),
          inbox(side.ia, side.pz, kBytes),
          outbox(side.ia, side.pz, kBytes),
          ep(side) {}
    // What an adapter has taken along that was closed abruptly.
    void forget() {
      for (Owner<dat_lmr_free>* const lmr : {&heap, &mapped, &inbox, &outbox}) lmr->release();
      ep.release();
      psp.release();
      if (side.psp) side.psp->release();
      for (Evd* const evd : {&side.recv, &side.request, &side.connect, &side.requests}) evd->release();
      side.pz.release();
    }
    Side side;
    Shareable shared;
    Lmr heap, mapped, inbox, outbox;
    Ep ep;
    Owner<dat_psp_free> psp;
  };

  DAT_IA_HANDLE ia() const { return objects_->side.ia.get(); }
  DAT_EP_HANDLE ep() const { return objects_->ep.get(); }
  const Lmr& of(Memory memory) const { return memory == Memory::ordinary ? objects_->heap : objects_->mapped; }
  static void make(std::span<std::byte> bytes, unsigned seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(i, seed);
  }
  static bool are(std::span<const std::byte> bytes, unsigned seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != byte_at(i, seed)) return false;
    }
    return true;
  }
  static DAT_RMR_TRIPLET remote_of(const Place& place, std::size_t bytes) {
    DAT_RMR_TRIPLET remote{};
    remote.rmr_context = place.context;
    remote.target_address = place.address;
    remote.segment_length = static_cast<decltype(remote.segment_length)>(bytes);
    return remote;
  }

  std::optional<Objects> objects_;
  std::uint64_t sent_ = 0;
  int failures_before_ = failures_in_module();
};

}  // namespace

std::unique_ptr<Party> make_party(const std::string& wire) {
  return std::make_unique<PartyOfThisVersion>(wire_by_name(wire));
}

}  // namespace anydat::test

#if DAT_VERSION_MAJOR == 1
extern "C" [[gnu::visibility("default")]] anydat::test::Party* anydat_test_make_party(const char* wire) {
  return anydat::test::make_party(wire).release();
}
#endif
