// SPDX-License-Identifier: BSD-3-Clause
#include "registry/builtin.h"

#include "nic/soft/adapter.h"
#include "nic/soft/addresses.h"

namespace anydat::registry {

std::vector<std::string> builtin_names() {
  std::vector<std::string> names{"soft"};
  for (const std::string& device : nic::soft::host_devices()) names.push_back("soft-" + device);
  return names;
}

std::unique_ptr<nic::Adapter> open_builtin(const std::string& name, nic::Status& status) {
  return nic::soft::SoftAdapter::open(name, status);
}

}  // namespace anydat::registry
