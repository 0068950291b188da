// SPDX-License-Identifier: BSD-3-Clause
// An event as the program gets it.
#pragma once

#include "dapl/event.h"
#include "face/versions.h"

namespace anydat::face {

// Any but a completed DTO.
void fill_other(const dapl::Event& from, DAT_EVENT& to);

// Writes what the kind of event defines, and nothing else of the union.
inline void fill_event(const dapl::Event& from, DAT_EVD_HANDLE evd, DAT_EVENT& to) {
  to.evd_handle = evd;
  if (from.kind != dapl::EventKind::dto_completion) [[unlikely]]
    return fill_other(from, to);
  to.event_number = completion_number(from);
  DAT_DTO_COMPLETION_EVENT_DATA& data = to.event_data.dto_completion_event_data;
  data.ep_handle = from.object;
  data.user_cookie.as_64 = from.cookie;
  data.status = static_cast<DAT_DTO_COMPLETION_STATUS>(from.status);
  data.transfered_length = static_cast<decltype(data.transfered_length)>(from.length);
  tell_more(from, to);
}

}  // namespace anydat::face
