// SPDX-License-Identifier: BSD-3-Clause
#include "instructions/partner.h"

#include "common/error.h"

namespace counting {

using tools::check;

Partner::Partner(Page& page)
    : page_(page),
      adapter_(tools::kDefaultIa),
      requests_(adapter_.make_evd(8, DAT_EVD_CR_FLAG)),
      mapped_(adapter_, kMessageBytes, kRemote, tools::Region::Kind::shareable),
      heap_(adapter_, kMessageBytes, kRemote) {
  page_.mapped = {reinterpret_cast<std::uintptr_t>(mapped_.data()), mapped_.rmr_context()};
  page_.heap = {reinterpret_cast<std::uintptr_t>(heap_.data()), heap_.rmr_context()};
}

void Partner::run() {
  const tools::Listener listener(adapter_, requests_.get(), 0);
  page_.qualifier.store(listener.qualifier());
  for (const bool on_srq : {false, true}) accept(on_srq);
  for (;;) {
    for (const auto& side : sides_) serve(*side);
    if (page_.wanted.load() != page_.done.load()) obey();
  }
}

void Partner::accept(bool on_srq) {
  auto side = std::make_unique<Side>(adapter_, on_srq);
  for (std::size_t i = 0; i < kDepth; ++i) check(side->post_recv(i), "posting a receive");
  DAT_EVENT event{};
  if (!tools::wait_event(requests_.get(), kPatience, event)) throw tools::Error("nobody connects");
  check(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, side->ep.get(), 0, nullptr), "dat_cr_accept");
  if (!tools::wait_event(side->connect.get(), kPatience, event)) throw tools::Error("the connection does not stand");
  sides_.push_back(std::move(side));
}

void Partner::serve(Side& side) {
  DAT_EVENT event;
  while (take(side.recv.get(), event)) {
    check(side.post_recv(event.event_data.dto_completion_event_data.user_cookie.as_64), "posting a receive");
    page_.received.fetch_add(1);
  }
}

void Partner::obey() {
  Side& side = *sides_[page_.on_srq.load()];
  const int count = static_cast<int>(page_.sends.load());
  for (int i = 0; i < count; ++i) {
    *side.message(static_cast<std::size_t>(i)) = std::byte{1};
    check(side.post_send(static_cast<std::size_t>(i)), "dat_ep_post_send");
  }
  take_all(side.request.get(), count);
  page_.done.fetch_add(1);
}

}  // namespace counting
