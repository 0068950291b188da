// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/setups_and_ends.h"

#include <new>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/caller.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/inquiry.h"
#include "nic/soft/wire/iwarp/transmitter.h"

namespace anydat::nic::soft::iwarp {

SetUpsAndEnds::SetUpsAndEnds(Fabric& fabric) : fabric_(fabric), sweep_timer_([this] { sweep(); }) {}
SetUpsAndEnds::~SetUpsAndEnds() = default;

void SetUpsAndEnds::shut_down() {
  callers_.clear();
  inquiries_.clear();
  try {
    lingering_closes_.wait();
  } catch (const std::bad_alloc&) {
    // Peers find their connections cut.
  }
  lingering_closes_.clear();
  sweep();
  fabric_.engine().cancel_timer(sweep_timer_);
}

void SetUpsAndEnds::descriptors_lost() {
  callers_.clear();
  for (const auto& inquiry : inquiries_) inquiry->descriptors_lost();
  lingering_closes_.clear();
}

void SetUpsAndEnds::called(os::UniqueFd socket, const Address& source, ConnQual qual) {
  if (!callers_.add(std::make_unique<Caller>(fabric_, std::move(socket), source, qual)).begin()) callers_.drop_newest();
}

SetUpsAndEnds::Begun SetUpsAndEnds::inquire(TcpStream& stream, const Address& remote, ConnQual qual) {
  Begun begun;
  Inquiry& made = inquiries_.add(std::make_unique<Inquiry>(fabric_, stream, qual));
  try {
    begun.status = made.begin(remote, begun.local);
  } catch (const std::bad_alloc&) {
    inquiries_.drop_newest();
    throw;
  }
  if (begun.status == Status::ok) {
    begun.inquiry = &made;
  } else {
    inquiries_.drop_newest();
  }
  return begun;
}

void SetUpsAndEnds::part(os::UniqueFd socket, Transmitter rest, Stranger::Stage stage, const Address& source) {
  try {
    auto lingering = std::make_unique<LingeringClose>(fabric_, std::move(socket), std::move(rest), stage, source);
    if (stage == Stranger::Stage::lingering) fabric_.adapter().strangers().one_lingers();
    lingering_closes_.add(std::move(lingering));
  } catch (const std::bad_alloc&) {
    // The peer finds the connection cut.
  }
}

void SetUpsAndEnds::sweep_soon(bool wanted) {
  if (wanted) fabric_.engine().set_timer(sweep_timer_, os::now_ns());
}

void SetUpsAndEnds::sweep() {
  callers_.sweep();
  inquiries_.sweep();
  lingering_closes_.sweep();
}

}  // namespace anydat::nic::soft::iwarp
