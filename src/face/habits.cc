// SPDX-License-Identifier: BSD-3-Clause
#include "face/habits.h"

#include <array>

#include "env/environment.h"
#include "face/versions.h"

namespace anydat::face {

namespace {

using dapl::Habits;

constexpr std::array kTable{
    HabitRow{&Habits::sends_without_local_read, Compat::default_,
             "Sends and RDMA Writes from memory that was registered without LOCAL_READ",
             "dtest (its messages lie in memory with LOCAL_WRITE alone)",
             "no device knows such a right, and the memory is the program's own; a bind still asks for it",
             "HabitsTest.SendsAndWritesNeedNoLocalRead",
             "Sends and Writes from a region that was registered with LOCAL_WRITE alone"},
    HabitRow{
        &Habits::mixed_completion_flags, Compat::default_,
        "streams of different completion flags, or completions that are not threshold ones beside other events, on "
        "one EVD",
        "MVAPICH2 (receives DEFAULT, requests UNSIGNALLED)",
        "each completion notifies by the flags of its own stream; the EVD's configuration is NOTIFY if any stream "
        "is UNSIGNALLED, and only a threshold of 1 is possible",
        "HabitsTest.StreamsNotifyByTheirOwnFlags", "streams of different completion flags on one EVD"},
    HabitRow{nullptr, Compat::strict, "srq_soft_hw of 0 in the attributes of an endpoint with an SRQ",
             "whoever clears the attributes (dtestsrq, dapltest)", "it is unset, as in a plain endpoint (ruling R30)",
             "SrqEndpoint.SoftWatermarkZeroIsUnsetAtCreationOnly", "attributes of an endpoint cleared"},
    HabitRow{&Habits::unknown_mask_bits, Compat::default_, "bits of a query's mask that stand for nothing",
             "MVAPICH2 (dat_ep_query with 0xffff, whose outcome it does not look at)",
             "all fields are filled whatever the mask, so there is nothing that such a bit could miss",
             "HabitsTest.UnknownMaskBitsAreNone", "bits of a query's mask that stand for nothing"},
    HabitRow{nullptr, Compat::strict, "fields of a query's result read that its mask did not ask for",
             "dtest, dtestsrq (max_private_data_size beside the named attributes)",
             "the standard leaves them open, so all fields are filled whatever the mask",
             "HabitsTest.QueriesFillAllFields", "fields of a query read that its mask did not ask for"},
    HabitRow{&Habits::short_remote_segment, Compat::openfabrics,
             "a remote segment that is said to be shorter than the local ones, whose length is moved",
             "dtest -b (always says 64 bytes)",
             "devices know no length of the remote segment; the target's regions are checked for all that is moved",
             "HabitsTest.TheLocalLengthCounts", "a remote segment that is said to be shorter than the local ones"},
    HabitRow{&Habits::any_transfer_size, Compat::openfabrics,
             "transfers beyond the sizes that the endpoint was created with, max_message_size and max_rdma_size",
             "dtest of uDAPL 2.0 (asks for 64 KiB, then writes and sends 4 MiB)",
             "OpenFabrics only says what was asked for; the adapter's own limits bound what is moved",
             "HabitsSizes.OnlyTheAdaptersBoundTransfers",
             "transfers longer than the endpoint's `max_message_size` or `max_rdma_size`"},
    HabitRow{&Habits::codes_without_class, Compat::openfabrics,
             "DAT_QUEUE_EMPTY and DAT_TIMEOUT_EXPIRED compared as they are, without DAT_GET_TYPE", "dtest -p",
             "those two are no errors to those who poll; DAT_GET_TYPE finds them all the same",
             "HabitsTest.EverydayOutcomesAreBare", "DAT_QUEUE_EMPTY and DAT_TIMEOUT_EXPIRED compared as they are"},
    HabitRow{&Habits::growing_evds, Compat::openfabrics,
             "EVDs that are shorter than what feeds them, the async EVD among them",
             "dtest (receive EVD of 3), dtestsrq (async EVD of 8)",
             "a full EVD grows up to max_evd_qlen instead of losing events", "HabitsTest.FullEvdsGrow",
             "EVDs that are shorter than what feeds them"},
    HabitRow{
        &Habits::each_event_triggers, Compat::openfabrics,
        "a CNO taken for a queue of triggers: one dat_cno_wait for each event, of the EVD whose event came last",
        "dtest -c of uDAPL 1.2 (one event at a time, of the EVD that it waits for)",
        "a device's events are far apart, so triggers seldom merge there; here a wait is told of each event once, the "
        "latest first, and of none that has been taken",
        "HabitsCno.EachEventTriggersItsCno", "one `dat_cno_wait` for each event"},
    HabitRow{&Habits::evds_of_other_instances, Compat::openfabrics,
             "an EVD of another open instance of the same adapter for an endpoint",
             "dapltest (its limit tests with -w above 1)",
             "the EVD's instance cannot be closed in order while it serves; closed abruptly, it leaves the endpoint "
             "without it",
             "HabitsInstances.AnEvdServesEndpointsOfAnotherInstance",
             "an EVD of another open instance of the same adapter"},
    HabitRow{&Habits::srq_ep_without_watermark, Compat::openfabrics,
             "max_recv_dtos of an endpoint with an SRQ set to anything", "dtestsrq (sets it to its burst)",
             "OpenFabrics has no hard high watermark; dat_ep_set_watermark sets one all the same",
             "HabitsTest.NoMaxRecvDtosBreaksAnSrqEndpoint",
             "`max_recv_dtos` of an endpoint with an SRQ set to anything"},
    HabitRow{
        &Habits::broken_after_disconnect, Compat::openfabrics,
        "one asynchronous EP_BROKEN waited for after each end of a connection of an endpoint with an SRQ", "dtestsrq",
        "there it says that the endpoint takes no more buffers of the SRQ; here it follows the connection event, when "
        "all that it took are back",
        "HabitsTest.SrqEndpointsReportTheirEndInOrder", "after each end of a connection of an endpoint with an SRQ"},
    HabitRow{&Habits::early_connects, Compat::openfabrics,
             "a request that is made a moment before the peer has made its service point",
             "dtestx (its server tells where it is, and listens after that)",
             "a device takes milliseconds to find the way; here a request that is refused is made again for 100 ms",
             "HabitsConnect.ARequestMayComeBeforeItsServicePoint", "a request made a moment before the peer listens"},
    HabitRow{&Habits::openfabrics_attributes, Compat::openfabrics,
             "named attributes of the Provider looked for by name",
             "dtest and dtestsrq of uDAPL 2.0 (DAT_IB_RDMA_READ, DAT_IB_TRANSPORT_MTU)",
             "without them these programs leave RDMA Reads out, or end", "HabitsTest.NamedAttributesAreThere",
             "named attributes of OpenFabrics looked for"},
};

Compat compat_now() {
  std::string_view text = env::text(env::Variable::compat);
  if (text != "strict" && text != "default" && text != "openfabrics") text = kDefaultCompat;
  if (text == "strict") return Compat::strict;
  if (text == "openfabrics") return Compat::openfabrics;
  return Compat::default_;
}

}  // namespace

std::span<const HabitRow> habit_table() {
  return kTable;
}

dapl::Habits habits(Compat compat) {
  Habits result;
  for (const HabitRow& row : kTable) {
    if (!row.decision) continue;
    dapl::Habit& decided = result.*row.decision;
    decided.allowed = row.from <= compat;
    if (decided.allowed) continue;
    decided.hint =
        row.from == Compat::default_ ? "; DAT_COMPAT=default allows it" : "; DAT_COMPAT=openfabrics allows it";
  }
  return result;
}

dapl::Habits habits() {
  return habits(compat_now());
}

}  // namespace anydat::face
