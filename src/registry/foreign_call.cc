// SPDX-License-Identifier: BSD-3-Clause
#include "registry/foreign_call.h"

#include <algorithm>
#include <array>

#include "registry/registry.h"
#include "registry/strerror.h"

namespace anydat::registry {

ForeignCall::ForeignCall(DAT_HANDLE handle, Subject subject)
    : destroys_(subject == Subject::destroyed_object || subject == Subject::destroyed_ia) {
  // No other Provider is here as a rule, and then there is nothing to look at.
  if (!ForeignTables::instance().any()) return;
  const bool is_ia = subject == Subject::ia || subject == Subject::destroyed_ia;
  table_ = is_ia ? Registry::instance().foreign_instance(handle) : ForeignTables::instance().find(handle);
  if (table_) table_->calls.fetch_add(1);
}

ForeignCall::~ForeignCall() {
  if (!table_) return;
  if (destroys_) ForeignTables::instance().forget_handles();
  if (table_->calls.fetch_sub(1) == 1) Registry::instance().sweep_if_postponed();
}

DAT_RETURN noted(const char* call, std::uint64_t sentences_before, DAT_RETURN rc) {
  const DAT_RETURN type = DAT_GET_TYPE(rc);
  constexpr std::array<DAT_RETURN, 6> kWithoutSentence{DAT_SUCCESS,         DAT_QUEUE_EMPTY,      DAT_QUEUE_FULL,
                                                       DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL, DAT_ABORT};
  if (std::find(kWithoutSentence.begin(), kWithoutSentence.end(), type) != kWithoutSentence.end()) return rc;
  if (dapl::sentences() != sentences_before) return rc;  // it was ours by another way, and has said why
  const auto text = [](const char* name) { return name ? name : ""; };
  const std::string_view parts[] = {call, text(return_type_name(rc)), text(return_subtype_name(rc))};
  dapl::note_error("{}: the Provider, which is another library, returns {} {} ({:#x})",
                   fmt::make_format_args(parts[0], parts[1], parts[2], rc));
  return rc;
}

}  // namespace anydat::registry
