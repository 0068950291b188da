// SPDX-License-Identifier: BSD-3-Clause
#include "nic/module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "os/folder_entries.h"
#include "os/named_file.h"

namespace anydat::nic {

namespace {

constexpr const char* kDevices = "/sys/class/infiniband";
constexpr const char* kModuleFile = "anydat/libanydat-verbs.so";

std::string module_file() {
  static const char here = 0;
  Dl_info self;
  std::string folder;  // of libdat
  if (dladdr(&here, &self) != 0 && self.dli_fname) folder = os::real_folder_of(self.dli_fname);
  return folder.empty() ? kModuleFile : folder + '/' + kModuleFile;
}

// Loaded once and for good: objects of its classes may be anywhere.
const Module* rdma_module(std::string& why) {
  const std::string file = module_file();
  if (!os::exists(file)) {
    why = fmt::format("the module for RDMA devices, {}, is not installed", file);
    return nullptr;
  }
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* error = dlerror();
    why = fmt::format("the module for RDMA devices does not load: {}", error ? error : file);
    return nullptr;
  }
  const auto* module = static_cast<const Module*>(dlsym(library, kModuleSymbol));
  if (!module || !(module->layout == Module::Layout{})) {
    why = fmt::format("the module for RDMA devices, {}, is of another build than libdat", file);
    return nullptr;
  }
  return module;
}

}  // namespace

std::optional<std::vector<std::string>> rdma_devices() {
  std::vector<std::string> names;
  os::FolderEntries entries(kDevices);
  for (std::string_view name; entries.next(name);) names.emplace_back(name);
  if (entries.lacks()) return std::nullopt;
  std::sort(names.begin(), names.end());
  return names;
}

std::unique_ptr<Adapter> open_rdma_device(const std::string& device, const std::string& name, Status& status,
                                          std::string& why) {
  const Module* module = rdma_module(why);
  if (!module) {
    status = Status::failed;
    return nullptr;
  }
  return module->open(device, name, status, why);
}

Status ask_rdma_device(const std::string& device, const std::string& name, AdapterInfo& info, std::string& why) {
  const Module* module = rdma_module(why);
  return module ? module->ask(device, name, info, why) : Status::failed;
}

}  // namespace anydat::nic
