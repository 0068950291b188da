// SPDX-License-Identifier: BSD-3-Clause
#include "kill_support.h"

#include <fmt/format.h>

#include <stdexcept>

namespace anydat::test {

std::ostream& operator<<(std::ostream& out, const Company& company) {
  return out << "wire " << company.wire << ", " << company.others << " others";
}

std::vector<Company> all_companies() {
  std::vector<Company> all;
  for (const Wire& wire : all_wires()) {
    all.push_back({.wire = wire, .others = 0});
    all.push_back({.wire = wire, .others = 7});
  }
  return all;
}

std::string company_name(const testing::TestParamInfo<Company>& info) {
  return info.param.wire.name + (info.param.others == 0 ? "_TwoProcesses" : "_NineProcesses");
}

Heard kill_and_hear(Peer& victim, DAT_EVD_HANDLE evd, Caller caller) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  victim.kill();
  const auto event = wait_event(evd);
  if (!event) {
    throw std::runtime_error(fmt::format("{}:{}: the survivor heard nothing", caller.file, caller.line));
  }
  return {.event = event->event_number,
          .after = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start)};
}

int reap_sends(DAT_EVD_HANDLE evd, int count, Caller caller) {
  int succeeded = 0;
  for (int i = 0; i < count; ++i) {
    const auto dto = expect_event(evd, DAT_DTO_COMPLETION_EVENT, caller).event_data.dto_completion_event_data;
    if (dto.user_cookie.as_64 != static_cast<DAT_UINT64>(i)) {
      ADD_FAILURE_AT(caller.file, caller.line) << "send " << dto.user_cookie.as_64 << " completed as number " << i;
    }
    if (dto.status != DAT_DTO_SUCCESS) {
      continue;
    }
    if (succeeded != i) {
      ADD_FAILURE_AT(caller.file, caller.line) << "send " << i << " succeeded after one that failed";
    }
    ++succeeded;
  }
  return succeeded;
}

}  // namespace anydat::test
