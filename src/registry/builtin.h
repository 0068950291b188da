// SPDX-License-Identifier: BSD-3-Clause
// The adapters that are there without any configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nic/adapter.h"

namespace anydat::registry {

// "soft" first, then "soft-<device>" for each network device that is up, and "verbs-<device>" for each RDMA device.
struct BuiltinNames {
  std::vector<std::string> names;
  bool lacks = false;  // network devices: there was no memory or descriptor to ask for them with
};
BuiltinNames builtin_names();
// Whether that is a name of an adapter which the lack may have left out.
bool is_of_network_device(const std::string& name);
// `why` is one sentence where there is more to say than the status.
std::unique_ptr<nic::Adapter> open_builtin(const std::string& name, nic::Status& status, std::string& why);
// What that adapter would say of itself. Nothing is opened that stays open.
nic::Status ask_builtin(const std::string& name, nic::AdapterInfo& info, std::string& why);

}  // namespace anydat::registry
