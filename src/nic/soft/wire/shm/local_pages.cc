// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/local_pages.h"

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

LocalPages::LocalPages(ShmStream& stream)
    : stream_(stream), of_requests_(stream.fabric().adapter(), *this), of_arrivals_(stream.fabric().adapter(), *this) {}

void LocalPages::bring() {
  for (OwnPages* const pages : {&of_requests_, &of_arrivals_}) {
    if (!stream_.over()) pages->bring();
  }
}

void LocalPages::go_on() {
  // Also where the link has gone since, and has no turns any more.
  if (!stream_.over()) stream_.disconnection().or_break([this] { stream_.rendezvous_receiver().place_held(); });
  if (!stream_.over() && stream_.writes().holds())
    stream_.disconnection().or_break([this] { stream_.writes().go_on(); });
  // Others may have wanted memory meanwhile.
  if (!stream_.over()) stream_.link()->sender().schedule_turn(stream_);
}

void LocalPages::wants_pages() {
  stream_.link()->sender().schedule_turn(stream_);
}

void LocalPages::pages_brought(const OwnPages& pages, const OwnPages::Brought& news) {
  if (stream_.over()) return;
  if (!news.there) {
    stream_.disconnection().or_break(
        [&] { &pages == &of_requests_ ? fail_request(news) : fail_arriving(news.address); });
  }
  go_on();
}

// DTO-40: the request that needs memory there.
void LocalPages::fail_request(const OwnPages::Brought& news) {
  if (!news.to_write && stream_.rendezvous_sender().fail(news.address)) return;
  if (stream_.queue_pair().sends().fail_blocked(news.address, news.to_write, WorkStatus::local_protection)) return;
  stream_.rdma().not_had(news.address);
}

// DTO-40: the message, or the Write, that is to come there.
void LocalPages::fail_arriving(std::uint64_t address) {
  if (stream_.writes().fail(address)) return;
  stream_.rendezvous_receiver().fail(address);
}

}  // namespace anydat::nic::soft::shm
