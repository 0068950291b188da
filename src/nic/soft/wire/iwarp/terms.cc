// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/terms.h"

#include <algorithm>

namespace anydat::nic::soft::iwarp {

namespace {

constexpr std::uint8_t kRevision = 2;
constexpr std::uint16_t kDepthMax = kReadDepthMax - 1;  // the largest value that is a number

std::uint16_t depth(std::uint16_t wanted) {
  return std::min(wanted, kDepthMax);
}

// Of a peer's depth: what it leaves open is left to us.
std::uint16_t depth_of(std::uint16_t said, std::uint16_t own) {
  return said == kReadDepthMax ? own : said;
}

}  // namespace

StartUp request_of(const Offer& offer, std::uint8_t revision) {
  StartUp frame;
  frame.crc = offer.crc;
  frame.revision = revision;
  if (revision >= kRevision) {
    Enhanced enhanced;
    enhanced.ird = depth(offer.reads_in);
    enhanced.ord = depth(offer.reads_out);
    enhanced.peer_to_peer = true;
    enhanced.rtr_write = true;
    enhanced.rtr_read = true;
    enhanced.rtr_empty_frame = true;
    frame.enhanced = enhanced;
  }
  return frame;
}

StartUp answer_to(const StartUp& request, const Offer& offer) {
  StartUp frame;
  frame.reply = true;
  frame.crc = request.crc || offer.crc;
  frame.revision = std::min(request.revision, kRevision);
  if (frame.revision >= kRevision && request.enhanced) {
    const Enhanced& asked = *request.enhanced;
    Enhanced enhanced;
    enhanced.ird = depth(offer.reads_in);
    enhanced.ord = std::min(depth(offer.reads_out), depth_of(asked.ird, kDepthMax));
    enhanced.peer_to_peer = asked.peer_to_peer;
    // One of those that are offered; ours by preference, since it can say hello.
    enhanced.rtr_write = asked.peer_to_peer && asked.rtr_write;
    enhanced.rtr_empty_frame = asked.peer_to_peer && !enhanced.rtr_write && asked.rtr_empty_frame;
    enhanced.rtr_read = asked.peer_to_peer && !enhanced.rtr_write && !enhanced.rtr_empty_frame && asked.rtr_read;
    frame.enhanced = enhanced;
  }
  return frame;
}

Terms terms_of_answerer(const StartUp& request, const Offer& offer) {
  Terms terms;
  terms.crc = request.crc || offer.crc;
  terms.reads_known = request.enhanced.has_value() && request.enhanced->ird != kReadDepthMax;
  terms.reads_out = terms.reads_known ? std::min(offer.reads_out, request.enhanced->ird) : offer.reads_out;
  terms.peer_begins = request.enhanced && request.enhanced->peer_to_peer;
  return terms;
}

bool asks_for_too_much(const StartUp& answer, const Offer& offer) {
  return answer.enhanced && depth_of(answer.enhanced->ord, 0) > depth(offer.reads_in);
}

bool terms_of_asker(const StartUp& answer, const Offer& offer, Terms& terms) {
  if (answer.markers) return false;
  terms.crc = answer.crc || offer.crc;
  terms.reads_known = answer.enhanced.has_value() && answer.enhanced->ird != kReadDepthMax;
  terms.reads_out = terms.reads_known ? std::min(offer.reads_out, answer.enhanced->ird) : offer.reads_out;
  if (answer.enhanced && answer.enhanced->peer_to_peer && !answer.enhanced->rtr_write) {
    terms.begins_by_frame = answer.enhanced->rtr_empty_frame;
    terms.begins_by_read = !terms.begins_by_frame && answer.enhanced->rtr_read;
  }
  return true;
}

}  // namespace anydat::nic::soft::iwarp
