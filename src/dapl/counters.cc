// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/counters.h"

#include <fmt/format.h>

#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/srq.h"
#include "env/log.h"

namespace anydat::dapl {

namespace {

const char* name_of(HandleType type) {
  switch (type) {
    case HandleType::ia:
      return "IA";
    case HandleType::ep:
      return "EP";
    case HandleType::evd:
      return "EVD";
    case HandleType::srq:
      return "SRQ";
    default:
      return "object";
  }
}

}  // namespace

Counters Counters::of(const Object& object) {
  Counters all;
  switch (object.type()) {
    case HandleType::ia: {
      nic::Engine& engine = static_cast<const Ia&>(object).engine();
      all.add("polls", engine.polls());
      all.add("sleeps", engine.waiting().sleeps());
      break;
    }
    case HandleType::ep: {
      const nic::QueuePair::Counters& c = static_cast<const Ep&>(object).queue_pair().counters();
      all.add("sends", c.sends.get());
      all.add("send_bytes", c.send_bytes.get());
      all.add("rdmas", c.rdmas());
      all.add("rdma_bytes", c.rdma_bytes());
      all.add("rdmas_in_memory", c.rdmas_in_memory.get());
      all.add("rdmas_by_peer", c.rdmas_by_peer.get());
      all.add("binds", c.binds.get());
      all.add("receives", c.all_receives());
      all.add("receive_bytes", c.receive_bytes.get());
      all.add("buffer_waits", c.buffer_waits.get());
      all.add("buffer_wait_ns", c.buffer_wait_ns.get());
      all.add("soft_watermark_events", c.soft_watermark_events.get());
      break;
    }
    case HandleType::evd: {
      const Evd::Counters c = static_cast<const Evd&>(object).counters();
      all.add("events", c.events);
      all.add("most_queued", c.most_queued);
      all.add("overflows", c.overflows);
      all.add("blocking_waits", c.waits);
      break;
    }
    case HandleType::srq: {
      const nic::ReceiveQueue& queue = static_cast<const Srq&>(object).queue();
      const nic::ReceiveQueue::Counters& c = queue.counters();
      const nic::ReceiveQueue::Counts now = queue.counts();
      all.add("posted", c.posted.get());
      all.add("taken", c.taken.get());
      all.add("reaped", c.posted.get() - now.outstanding);
      all.add("lowest_available", c.lowest_available.get());
      all.add("times_empty", c.times_empty.get());
      all.add("empty_ns", c.empty_ns.get());
      all.add("low_watermark_events", c.low_watermark_events.get());
      break;
    }
    default:
      break;
  }
  return all;
}

void log_counters(const Object& object) {
  if (!env::log_enabled(env::LogLevel::info)) return;
  fmt::memory_buffer text;  // on the stack: there are few of them
  const Counters all = Counters::of(object);
  for (const Counter& row : all.rows()) {
    if (row.value != 0)
      fmt::format_to(std::back_inserter(text), "{} {} {}", text.size() ? "," : "", row.name, row.value);
  }
  if (text.size() == 0) return;
  env::log(env::LogLevel::info, "{} {} counted{}", name_of(object.type()), object.handle(),
           std::string_view(text.data(), text.size()));
}

}  // namespace anydat::dapl
