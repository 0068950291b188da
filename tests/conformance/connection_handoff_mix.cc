// SPDX-License-Identifier: BSD-3-Clause
// Requests that are accepted, rejected, passed around and given up, many at a time: whatever happens to one, its active
// side hears of one outcome (EP-SM-22), and nothing is left.

#include <map>
#include <random>
#include <set>

#include "ep_fixture.h"

namespace anydat::test {
namespace {

class HandoffMix : public testing::TestWithParam<Wire> {
 protected:
  // One instance with a service point, which does with requests what chance says.
  struct Station {
    explicit Station(const Wire& wire) : side(wire) { qualifier = side.listen(); }
    Side side;
    DAT_CONN_QUAL qualifier = 0;
    std::map<DAT_EP_HANDLE, Ep> accepted;
    int arrivals = 0;
  };

  DAT_CONN_QUAL somebody() { return stations_[random_() % stations_.size()]->qualifier; }

  // True if there was something to do.
  bool serve(Station& station) {
    bool busy = false;
    while (const auto event = poll_event(station.side.requests.get())) {
      busy = true;
      ++station.arrivals;
      const DAT_CR_HANDLE request = event->event_data.cr_arrival_event_data.cr_handle;
      switch (random_() % 6) {
        case 0:
          EXPECT_THAT(dat_cr_reject(request), Succeeds());
          break;
        case 1:
        case 2: {
          Ep ep(station.side);
          EXPECT_THAT(dat_cr_accept(request, ep.get(), 0, nullptr), Succeeds());
          const DAT_EP_HANDLE handle = ep.get();
          station.accepted.emplace(handle, std::move(ep));
          break;
        }
        default:
          EXPECT_THAT(dat_cr_handoff(request, somebody()), Succeeds());
      }
    }
    while (const auto event = poll_event(station.side.connect.get())) {
      busy = true;
      if (event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
        EXPECT_EQ(station.accepted.erase(event->event_data.connect_event_data.ep_handle), 1u)
            << event_name(event->event_number);
      }
    }
    return busy;
  }

  std::mt19937 random_{12345};
  std::vector<std::unique_ptr<Station>> stations_;
};

TEST_P(HandoffMix, EveryAttemptHasOneOutcome) {
  // CR-HO-1, CR-HO-3, CR-HO-5, EP-SM-22, EP-CONN-9, INV-8
  constexpr int kStations = 4;
  constexpr int kCallers = 300;
  for (int i = 0; i < kStations; ++i) {
    stations_.push_back(std::make_unique<Station>(GetParam()));
  }
  Side client(GetParam());
  std::map<DAT_EP_HANDLE, Ep> calling;
  std::map<DAT_EVENT_NUMBER, int> outcomes;
  std::vector<Ep> settled;
  std::set<DAT_EP_HANDLE> freed;
  int made = 0;
  const auto end = std::chrono::steady_clock::now() + 4 * patience();
  while (made < kCallers || !calling.empty()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << calling.size() << " attempts have no outcome";
    for (int i = 0; i < 10 && made < kCallers; ++i, ++made) {
      Ep ep(client);
      const DAT_EP_HANDLE handle = ep.get();
      // Some have so little time that it ends anywhere on their way.
      const auto timeout = static_cast<DAT_TIMEOUT>(random_() % 3 == 0 ? 1 + random_() % 3000 : DAT_TIMEOUT_INFINITE);
      ASSERT_THAT(try_connect(handle, somebody(), timeout), Succeeds());
      if (random_() % 8 == 0) {
        ASSERT_THAT(ep.free(), Succeeds());  // it changes its mind; what was reported before may still be there
        freed.insert(handle);
      } else {
        calling.emplace(handle, std::move(ep));
      }
    }
    for (auto& station : stations_) {
      serve(*station);
    }
    while (const auto event = poll_event(client.connect.get())) {
      const DAT_EP_HANDLE handle = event->event_data.connect_event_data.ep_handle;
      if (freed.erase(handle) == 1) {
        continue;
      }
      const auto found = calling.find(handle);
      ASSERT_NE(found, calling.end()) << "a second outcome: " << event_name(event->event_number);
      ++outcomes[event->event_number];
      settled.push_back(std::move(found->second));  // it stays, so that a second outcome would be seen
      calling.erase(found);
    }
  }
  for (const auto& [number, count] : outcomes) {
    EXPECT_TRUE(number == DAT_CONNECTION_EVENT_ESTABLISHED || number == DAT_CONNECTION_EVENT_PEER_REJECTED ||
                number == DAT_CONNECTION_EVENT_TIMED_OUT)
        << count << " times " << event_name(number);
  }
  EXPECT_GT(outcomes[DAT_CONNECTION_EVENT_ESTABLISHED], 0);
  EXPECT_GT(outcomes[DAT_CONNECTION_EVENT_PEER_REJECTED], 0);
  int arrivals = 0;
  for (const auto& station : stations_) {
    arrivals += station->arrivals;
  }
  EXPECT_GT(arrivals, kCallers) << "nothing was passed on";

  // What was accepted in vain ends as well, and whatever was established ends with the callers.
  settled.clear();
  EXPECT_TRUE(eventually([&] {
    bool empty = true;
    for (auto& station : stations_) {
      serve(*station);
      empty = empty && station->accepted.empty();
    }
    return empty;
  }));
}

ANYDAT_OVER_ALL_WIRES(HandoffMix);

}  // namespace
}  // namespace anydat::test
