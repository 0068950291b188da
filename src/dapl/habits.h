// SPDX-License-Identifier: BSD-3-Clause
// What programs written for other stacks take for granted and the standard does not grant, as far as an instance lets
// them have it. The face decides (face/habits.h); the objects only see what was decided.
#pragma once

namespace anydat::dapl {

struct Habit {
  bool allowed = false;
  const char* hint = "";  // ends the sentence of a refusal, if another setting would not have refused

  explicit operator bool() const { return allowed; }
};

// A value without any is the standard as it is written.
struct Habits {
  Habit sends_without_local_read;  // DTO-11, RDW-6: the source of a Send or a Write needs no privilege
  Habit mixed_completion_flags;    // EVM-24: streams of an EVD need not agree on theirs
  Habit short_remote_segment;  // RDW-2, RDR-2: a remote segment may be shorter than the local ones, whose length counts
  Habit any_transfer_size;     // DTO-8, RDW-2: only the adapter's limits bound a transfer, not its endpoint's sizes
  Habit codes_without_class;   // RC-2: DAT_QUEUE_EMPTY and DAT_TIMEOUT_EXPIRED are returned as they are
  Habit each_event_triggers;   // EVM-43: triggers of a CNO that no thread waits on are kept one by one
  Habit growing_evds;          // EVM-49: an EVD that is full grows, as far as max_evd_qlen
  Habit evds_of_other_instances;   // EP-CREATE-2, GEN-12: an endpoint's EVDs may be of another instance of its adapter
  Habit srq_ep_without_watermark;  // EP-CSRQ-16: max_recv_dtos of an endpoint with an SRQ says nothing
  Habit broken_after_disconnect;   // an endpoint with an SRQ reports EP_BROKEN once its buffers are back
  Habit early_connects;            // EP-SM-12: a request may come a moment before its service point
  Habit unknown_mask_bits;         // GEN-7: bits of a query's mask that stand for nothing are none
  Habit openfabrics_attributes;    // named attributes of OpenFabrics' Providers
};

}  // namespace anydat::dapl
