// SPDX-License-Identifier: BSD-3-Clause
// The face of version 1.2: what the objects answer becomes what the interface says.
#ifndef ANYDAT_FACE
#define ANYDAT_FACE 12
#endif
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "face/edge.h"
#include "face/event.h"

namespace anydat::test {
namespace {

using dapl::Argument;
using dapl::Code;
using dapl::Detail;
using dapl::Error;
using dapl::EventKind;

constexpr const char* kParameters[] = {
#define ANYDAT_CALL(name, subject, cancelling, parameters, arguments) #arguments,
#include "face/calls.def"
// What uDAPL 2.0 has added.
#define ANYDAT_CALL(name, subject, cancelling, parameters, arguments) #arguments,
#define ANYDAT_INNER_CALL ANYDAT_CALL
#include "face20/calls.def"
#undef ANYDAT_CALL
#undef ANYDAT_INNER_CALL
    // Opened through the registry, which is no Provider's call.
    "(ia_name_ptr, async_evd_min_qlen, async_evd_handle, ia_handle)",
};

// ARG-2: an argument that an object refuses has a place in some call, so that its subtype says so.
TEST(Face, EachArgumentIsAParameterOfSomeCall) {
  for (unsigned number = 1; number < static_cast<unsigned>(Argument::count); ++number) {
    const std::string name = dapl::name_of(static_cast<Argument>(number));
    bool found = false;
    for (const std::string parameters : kParameters) {
      for (const char* before : {"(", " "}) {
        for (const char* after : {")", ","}) found |= parameters.find(before + name + after) != std::string::npos;
      }
    }
    EXPECT_TRUE(found) << name;
  }
}

// ARG-2
TEST(Face, AnArgumentIsNamedByItsPlaceInTheCall) {
  const Error error(Code::invalid_parameter, Argument::ep_attributes);
  const DAT_RETURN base = DAT_CLASS_ERROR | DAT_INVALID_PARAMETER;
  EXPECT_EQ(face::to_dat(error, "(ia_handle, pz_handle, recv, request, connect, ep_attributes, ep_handle)"),
            base | DAT_INVALID_ARG6);
  EXPECT_EQ(face::to_dat(error, "(ia_handle, pz_handle, recv, request, connect, srq_handle, ep_attributes, ep_handle)"),
            base | DAT_INVALID_ARG7);
  EXPECT_EQ(face::to_dat(error, "(ep_attributes)"), base | DAT_INVALID_ARG1);
  EXPECT_EQ(face::to_dat(error, "(my_ep_attributes, ep_attributes2)"), base | DAT_NO_SUBTYPE);  // not there
  EXPECT_EQ(face::to_dat(error, "(a, b, c, d, e, f, g, h, i, ep_attributes)"), base | DAT_INVALID_ARG10);
  EXPECT_EQ(face::to_dat(error, "(a, b, c, d, e, f, g, h, i, j, ep_attributes)"), base | DAT_NO_SUBTYPE);  // no ARG11
  EXPECT_EQ(face::to_dat(Error(Code::invalid_parameter, face::at(3)), "()"), base | DAT_INVALID_ARG3);
}

// RC-1, RC-2
TEST(Face, OtherErrorsKeepTypeAndSubtype) {
  EXPECT_EQ(face::to_dat(dapl::kSuccess, "()"), DAT_SUCCESS);
  EXPECT_EQ(face::to_dat(Error(Code::invalid_state, Detail::srq_in_use), "()"),
            DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_SRQ_IN_USE);
  EXPECT_EQ(face::to_dat(Error::everyday(Code::queue_empty, true), "()"), DAT_CLASS_ERROR | DAT_QUEUE_EMPTY);
  EXPECT_EQ(face::to_dat(Error::everyday(Code::queue_empty, false), "()"), DAT_RETURN{DAT_QUEUE_EMPTY});
}

struct Converted {
  DAT_EVENT event;
  bool rest_untouched;  // behind the member of the union that the event has
};

Converted convert(const dapl::Event& from, std::size_t data_bytes) {
  DAT_EVENT to;
  std::memset(static_cast<void*>(&to), 0x5a, sizeof to);
  face::fill_event(from, &to, to);
  bool untouched = true;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&to);
  for (std::size_t i = offsetof(DAT_EVENT, event_data) + data_bytes; i < sizeof to; ++i) untouched &= bytes[i] == 0x5a;
  return {to, untouched};
}

// EVT-8, EVT-9: what a completion tells.
TEST(Face, ACompletionBecomesItsEvent) {
  int endpoint = 0;
  dapl::Event from{};
  from.kind = EventKind::dto_completion;
  from.status = nic::WorkStatus::remote_access;
  from.operation = nic::WorkKind::rdma_write;
  from.object = &endpoint;
  from.cookie = 0x1122334455667788;
  from.length = std::uint64_t{5} << 32;
  const Converted dto = convert(from, sizeof(DAT_DTO_COMPLETION_EVENT_DATA));
  EXPECT_EQ(dto.event.event_number, DAT_DTO_COMPLETION_EVENT);
  const DAT_DTO_COMPLETION_EVENT_DATA& data = dto.event.event_data.dto_completion_event_data;
  EXPECT_EQ(data.ep_handle, &endpoint);
  EXPECT_EQ(data.user_cookie.as_64, from.cookie);
  EXPECT_EQ(data.status, DAT_DTO_ERR_REMOTE_ACCESS);
  EXPECT_EQ(data.transfered_length, from.length);
  EXPECT_TRUE(dto.rest_untouched);

  from.kind = EventKind::bind_completion;
  from.status = nic::WorkStatus::bind_failed;
  const Converted bind = convert(from, sizeof(DAT_RMR_BIND_COMPLETION_EVENT_DATA));
  EXPECT_EQ(bind.event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
  EXPECT_EQ(bind.event.event_data.rmr_completion_event_data.rmr_handle, &endpoint);
  EXPECT_EQ(bind.event.event_data.rmr_completion_event_data.status, DAT_RMR_OPERATION_FAILED);
  EXPECT_TRUE(bind.rest_untouched);
}

// EVT-26: a rejection carries no private data in this version, whatever the peer has sent.
TEST(Face, OnlyAnAcceptanceShowsPrivateData) {
  int endpoint = 0;
  const char bytes[] = "private";
  dapl::Event from{};
  from.object = &endpoint;
  from.detail = sizeof bytes;
  from.pointer = bytes;
  for (const EventKind kind : {EventKind::established, EventKind::peer_rejected}) {
    from.kind = kind;
    const Converted made = convert(from, sizeof(DAT_CONNECTION_EVENT_DATA));
    const DAT_CONNECTION_EVENT_DATA& data = made.event.event_data.connect_event_data;
    const bool accepted = kind == EventKind::established;
    EXPECT_EQ(made.event.event_number,
              accepted ? DAT_CONNECTION_EVENT_ESTABLISHED : DAT_CONNECTION_EVENT_PEER_REJECTED);
    EXPECT_EQ(data.ep_handle, &endpoint);
    EXPECT_EQ(data.private_data_size, accepted ? static_cast<DAT_COUNT>(sizeof bytes) : 0);
    EXPECT_EQ(data.private_data, accepted ? bytes : nullptr);
    EXPECT_TRUE(made.rest_untouched);
  }
}

// EVT-31, EVT-32: an error names its object and the reason.
TEST(Face, AnAsynchronousEventNamesObjectAndReason) {
  int srq = 0;
  dapl::Event from{};
  from.kind = EventKind::provider_internal_error;
  from.object = &srq;
  from.detail = dapl::async_reason::kSrqLowWatermark;
  const Converted made = convert(from, sizeof(DAT_ASYNCH_ERROR_EVENT_DATA));
  EXPECT_EQ(made.event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
  EXPECT_EQ(made.event.event_data.asynch_error_event_data.dat_handle, &srq);
  EXPECT_EQ(made.event.event_data.asynch_error_event_data.reason, DAT_SRQ_LOW_WATERMARK_EVENT);
  EXPECT_TRUE(made.rest_untouched);
}

// EP-MODIFY-1: what a mask of version 1.2 names.
TEST(Face, AMaskNamesTheMembersToChange) {
  namespace field = dapl::ep_field;
  EXPECT_EQ(face::fields_of(0), 0u);
  EXPECT_EQ(face::fields_of(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE), field::kPz | field::kRequestEvd);
  EXPECT_EQ(face::fields_of(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS), field::kMaxRecvDtos);
  for (const DAT_EP_PARAM_MASK fixed :
       {DAT_EP_FIELD_IA_HANDLE, DAT_EP_FIELD_EP_STATE, DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR, DAT_EP_FIELD_LOCAL_PORT_QUAL,
        DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR, DAT_EP_FIELD_REMOTE_PORT_QUAL, DAT_EP_FIELD_SRQ_HANDLE}) {
    EXPECT_EQ(face::fields_of(fixed), field::kUnchangeable) << fixed;
  }
}

}  // namespace
}  // namespace anydat::test
