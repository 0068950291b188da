// SPDX-License-Identifier: BSD-3-Clause
// The adapters that are there without any configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nic/adapter.h"

namespace anydat::registry {

// Kinds of devices that there was no memory or descriptor to look for with: the host may have any.
struct UnseenDevices {
  bool network = false;
  bool rdma = false;
  // Whether an adapter of one of them may have that name.
  bool may_have(const std::string& name) const;
};
// "soft" first, then "soft-<device>" for each network device that is up, and "verbs-<device>" for each RDMA device.
struct BuiltinNames {
  std::vector<std::string> names;
  UnseenDevices unseen;
};
BuiltinNames builtin_names();
// `why` is one sentence where there is more to say than the status.
std::unique_ptr<nic::Adapter> open_builtin(const std::string& name, nic::Status& status, std::string& why);
// What that adapter would say of itself. Nothing is opened that stays open.
nic::Status ask_builtin(const std::string& name, nic::AdapterInfo& info, std::string& why);

}  // namespace anydat::registry
