// SPDX-License-Identifier: BSD-3-Clause
#include "registry/builtin.h"

#include <cerrno>
#include <optional>
#include <string_view>

#include "nic/module.h"
#include "nic/soft/adapter.h"
#include "nic/soft/addresses.h"
#include "os/lack.h"

namespace anydat::registry {

namespace {

constexpr std::string_view kSoft = "soft-";
constexpr std::string_view kVerbs = "verbs-";

}  // namespace

BuiltinNames builtin_names() {
  BuiltinNames all{{"soft"}, {}};
  const auto add = [&](std::string_view kind, const std::vector<std::string>& devices) {
    for (const std::string& device : devices) all.names.push_back(std::string(kind) + device);
  };
  if (const auto devices = nic::soft::host_devices()) {
    add(kSoft, *devices);
  } else {
    // A sandbox may forbid to ask; but what cannot be found for a lack of descriptors or memory may be there.
    all.unseen.network = os::is_lack(errno);
  }
  if (const auto devices = nic::rdma_devices()) {
    add(kVerbs, *devices);
  } else {
    all.unseen.rdma = true;
  }
  return all;
}

bool UnseenDevices::may_have(const std::string& name) const {
  return (network && name.starts_with(kSoft)) || (rdma && name.starts_with(kVerbs));
}

std::unique_ptr<nic::Adapter> open_builtin(const std::string& name, nic::Status& status, std::string& why) {
  if (name.starts_with(kVerbs)) return nic::open_rdma_device(name.substr(kVerbs.size()), name, status, why);
  return nic::soft::SoftAdapter::open(name, status);
}

nic::Status ask_builtin(const std::string& name, nic::AdapterInfo& info, std::string& why) {
  if (name.starts_with(kVerbs)) return nic::ask_rdma_device(name.substr(kVerbs.size()), name, info, why);
  return nic::soft::SoftAdapter::ask(name, info);
}

}  // namespace anydat::registry
