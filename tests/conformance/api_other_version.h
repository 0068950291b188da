// SPDX-License-Identifier: BSD-3-Clause
// The library of the other version, in the same process as the one under test: two copies, neither of which knows the
// other's objects (D2-HDR-10).
#pragma once

#include <dat/udat.h>

#include <string>
#include <vector>

namespace anydat::test {

// An open adapter there, with an object of each type that both versions make by the same parameters, or nearly. It is
// closed with this. Throws if something cannot be made.
class OtherVersion {
 public:
  explicit OtherVersion(std::string ia_name);
  ~OtherVersion();
  OtherVersion(const OtherVersion&) = delete;
  OtherVersion& operator=(const OtherVersion&) = delete;

  // Of the adapter, its asynchronous EVD, and all that has been made.
  const std::vector<DAT_HANDLE>& handles() const { return handles_; }

 private:
  template <typename Function>
  Function* call(const char* name) const;
  void make_objects();

  void* library_;
  DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
  std::vector<DAT_HANDLE> handles_;
  char memory_[64] = {};
};

}  // namespace anydat::test
