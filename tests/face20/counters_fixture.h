// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the InfiniBand extension's counters share.
#pragma once

#include <dat2/dat_ib_extensions.h>

#include <vector>

#include "face20/fixture.h"

namespace anydat::test {

inline constexpr DAT_UINT64 kUntouched = 0x5a5a5a5a5a5a5a5a;

inline int count_of(DAT_HANDLE_TYPE type) {
  if (type == DAT_HANDLE_TYPE_IA) return DCNT_IA_ALL_COUNTERS;
  return type == DAT_HANDLE_TYPE_EP ? int{DCNT_EP_ALL_COUNTERS} : int{DCNT_EVD_ALL_COUNTERS};
}

// All counters of an object.
inline std::vector<DAT_UINT64> counters_of(DAT_HANDLE handle, bool reset = false) {
  DAT_HANDLE_TYPE type = DAT_HANDLE_TYPE_IA;
  require(dat_get_handle_type(handle, &type), "dat_get_handle_type");
  std::vector<DAT_UINT64> values(static_cast<std::size_t>(count_of(type)), kUntouched);
  require(dat_ib_query_counters(handle, count_of(type), values.data(), reset ? 1 : 0), "dat_ib_query_counters");
  return values;
}

inline DAT_UINT64 counter_of(DAT_HANDLE handle, int counter) {
  return counters_of(handle).at(static_cast<std::size_t>(counter));
}

// How far the counters of an object have got since this was made.
class Since {
 public:
  explicit Since(DAT_HANDLE handle) : handle_(handle), before_(counters_of(handle)) {}
  DAT_UINT64 operator[](int counter) const {
    return counter_of(handle_, counter) - before_.at(static_cast<std::size_t>(counter));
  }

 private:
  DAT_HANDLE handle_;
  std::vector<DAT_UINT64> before_;
};

inline void post_software(DAT_EVD_HANDLE evd) {
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  require(dat_evd_post_se(evd, &event), "dat_evd_post_se");
}

class Dat2Counters : public Dat2 {
 protected:
  static DAT_CR_HANDLE next_request(const Side& side) {
    const DAT_EVENT event = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    return event.event_data.cr_arrival_event_data.cr_handle;
  }
  static void connect_to(const Ep& ep, DAT_CONN_QUAL qualifier) {
    require(dat_ep_connect(ep.get(), loopback(), qualifier, 60'000'000, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
  }
};

}  // namespace anydat::test
