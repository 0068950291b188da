// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/types.h"

namespace anydat::dapl {

class Ep;
class Evd;
class EvdsOfCall;
class Pz;

// The objects of the program that an endpoint works with, but for its SRQ, which never changes.
struct EpParts {
  Pz* pz = nullptr;
  Evd* recv = nullptr;
  Evd* request = nullptr;
  Evd* connect = nullptr;
};

// What an endpoint consists of and its attributes: which combinations there may be, and what follows from a change for
// the objects that are used, the posts and the queue pair.
//
// With the engine held.
class EpConfiguration {
 public:
  explicit EpConfiguration(Ep& ep) : ep_(ep) {}
  EpConfiguration(const EpConfiguration&) = delete;
  EpConfiguration& operator=(const EpConfiguration&) = delete;

  const EpParts& parts() const { return parts_; }
  const EpAttributes& attributes() const { return attr_; }
  bool ready_to_connect() const { return parts_.pz && parts_.connect; }

  // What creation demands; of modification, too, but for the watermarks. `argument`: by which the call is given the
  // attributes, or the zone.
  Error check(const char* call, Argument argument, const EpParts& parts, const EpAttributes& attr) const;
  Error check_zone_of_srq(const char* call, Argument argument, const EpParts& parts) const;
  Error check_watermarks(const char* call, Count soft, Count hard) const;
  void take(const EpParts& parts, const EpAttributes& attr);
  // Frees the PZ and the EVDs for others.
  void release() { take({}, attr_); }

  // The members of `to` that `fields` names, or nothing.
  Error modify(EpFields fields, const EpParameters& to, const EvdsOfCall& evds);
  Error set_watermark(Count soft, Count hard);
  // Goes on without the EVD, whose instance closes: what would be queued there is lost.
  void give_back(const Evd& evd);

 private:
  Ep& ep_;
  EpParts parts_;
  EpAttributes attr_{};
};

}  // namespace anydat::dapl
