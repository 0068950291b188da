// SPDX-License-Identifier: BSD-3-Clause
// A NIC that is a library of its own, so that libdat does not depend on what the NIC depends on: how libdat finds and
// opens it, and what such a library exports.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic/adapter.h"

namespace anydat::nic {

// The library exports one of these under the name kModuleSymbol. It shares the layouts of the seam with libdat, so both
// must be of one build: the first member says so and is looked at before anything else.
struct Module {
  struct Layout {
    std::uint32_t interface = 7;  // counts changes that the sizes below do not show
    std::uint32_t engine = sizeof(Engine);
    std::uint32_t regions = sizeof(RegionTable);
    std::uint32_t info = sizeof(AdapterInfo);
    std::uint32_t completion = sizeof(Completion);
    std::uint32_t send = sizeof(SendRequest);
    bool operator==(const Layout&) const = default;
  };
  Layout layout;
  // Opens a device under the name that adapter has for others. On failure the result is null and `why` one sentence.
  std::unique_ptr<Adapter> (*open)(const std::string& device, const std::string& name, Status& status,
                                   std::string& why);
  // What the adapter would say of itself, without making one.
  Status (*ask)(const std::string& device, const std::string& name, AdapterInfo& info, std::string& why);
};
inline constexpr const char* kModuleSymbol = "anydat_nic_module";

// The RDMA devices of this host, by the names that its kernel gives them; sorted. Nothing: there was no descriptor or
// memory to look for them with.
std::optional<std::vector<std::string>> rdma_devices();

// Opens one of them by the module for such devices, which lies beside libdat in the folder `anydat`.
std::unique_ptr<Adapter> open_rdma_device(const std::string& device, const std::string& name, Status& status,
                                          std::string& why);
// What such an adapter would say of itself; on failure `why` is one sentence.
Status ask_rdma_device(const std::string& device, const std::string& name, AdapterInfo& info, std::string& why);

}  // namespace anydat::nic
