// SPDX-License-Identifier: BSD-3-Clause
#include "api_other_version.h"

#include <dlfcn.h>

#include <stdexcept>

#include "support/dat_fixture.h"

namespace anydat::test {

namespace {

constexpr bool kOtherIsVersion1 = DAT_VERSION_MAJOR != 1;
constexpr const char* kLibrary = kOtherIsVersion1 ? ANYDAT_LIBDAT : ANYDAT_LIBDAT2;
constexpr DAT_UINT32 kMajor = kOtherIsVersion1 ? 1 : 2;
constexpr DAT_UINT32 kMinor = kOtherIsVersion1 ? 2 : 0;

using Openv = DAT_RETURN(DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*, DAT_UINT32, DAT_UINT32, DAT_BOOLEAN);
// dat_lmr_create, with the va_type of 2.0 and without.
using CreateLmr1 = DAT_RETURN(DAT_IA_HANDLE, DAT_MEM_TYPE, DAT_REGION_DESCRIPTION, DAT_VLEN, DAT_PZ_HANDLE,
                              DAT_MEM_PRIV_FLAGS, DAT_LMR_HANDLE*, DAT_LMR_CONTEXT*, DAT_RMR_CONTEXT*, DAT_VLEN*,
                              DAT_VADDR*);
using CreateLmr2 = DAT_RETURN(DAT_IA_HANDLE, DAT_MEM_TYPE, DAT_REGION_DESCRIPTION, DAT_VLEN, DAT_PZ_HANDLE,
                              DAT_MEM_PRIV_FLAGS, int, DAT_LMR_HANDLE*, DAT_LMR_CONTEXT*, DAT_RMR_CONTEXT*, DAT_VLEN*,
                              DAT_VADDR*);

}  // namespace

OtherVersion::OtherVersion(std::string ia_name) : library_(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
  if (!library_) throw std::runtime_error(dlerror());
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  require(call<Openv>("dat_ia_openv")(ia_name.data(), 8, &async_evd, &ia_, kMajor, kMinor, DAT_FALSE), "dat_ia_openv");
  handles_ = {ia_, async_evd};
  make_objects();
}

OtherVersion::~OtherVersion() {
  (void)call<decltype(dat_ia_close)>("dat_ia_close")(ia_, DAT_CLOSE_ABRUPT_FLAG);
}

template <typename Function>
Function* OtherVersion::call(const char* name) const {
  void* const found = dlsym(library_, name);
  if (!found) throw std::runtime_error(dlerror());
  return reinterpret_cast<Function*>(found);
}

void OtherVersion::make_objects() {
  const auto make = [this](const char* what, auto&& create) {
    DAT_HANDLE made = DAT_HANDLE_NULL;
    require(create(&made), what);
    handles_.push_back(made);
    return made;
  };
  const auto no_agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
  make("dat_cno_create",
       [&](DAT_HANDLE* cno) { return call<decltype(dat_cno_create)>("dat_cno_create")(ia_, no_agent, cno); });
  const DAT_HANDLE pz = make(
      "dat_pz_create", [&](DAT_HANDLE* made) { return call<decltype(dat_pz_create)>("dat_pz_create")(ia_, made); });
  const auto evd_of = [&](DAT_EVD_FLAGS flags) {
    return make("dat_evd_create", [&](DAT_HANDLE* evd) {
      return call<decltype(dat_evd_create)>("dat_evd_create")(ia_, 8, DAT_HANDLE_NULL, flags, evd);
    });
  };
  const DAT_HANDLE events = evd_of(DAT_EVD_DTO_FLAG);
  const DAT_HANDLE connect = evd_of(DAT_EVD_CONNECTION_FLAG);
  const DAT_HANDLE requests = evd_of(DAT_EVD_CR_FLAG);
  const auto ep_of = [&] {
    return make("dat_ep_create", [&](DAT_HANDLE* ep) {
      return call<decltype(dat_ep_create)>("dat_ep_create")(ia_, pz, events, events, connect, nullptr, ep);
    });
  };
  ep_of();
  DAT_CONN_QUAL qualifier = 0;
  make("dat_psp_create_any", [&](DAT_HANDLE* psp) {
    return call<decltype(dat_psp_create_any)>("dat_psp_create_any")(ia_, &qualifier, requests, DAT_PSP_CONSUMER_FLAG,
                                                                    psp);
  });
  const DAT_HANDLE reserved = ep_of();
  make("dat_rsp_create", [&](DAT_HANDLE* rsp) {
    return call<decltype(dat_rsp_create)>("dat_rsp_create")(ia_, qualifier + (DAT_CONN_QUAL{1} << 40), reserved,
                                                            requests, rsp);
  });
  make("dat_rmr_create", [&](DAT_HANDLE* rmr) { return call<decltype(dat_rmr_create)>("dat_rmr_create")(pz, rmr); });
  DAT_SRQ_ATTR attributes{};
  attributes.max_recv_dtos = 4;
  attributes.max_recv_iov = 1;
  attributes.low_watermark = DAT_SRQ_LW_DEFAULT;
  make("dat_srq_create",
       [&](DAT_HANDLE* srq) { return call<decltype(dat_srq_create)>("dat_srq_create")(ia_, pz, &attributes, srq); });
  make("dat_lmr_create", [&](DAT_HANDLE* lmr) {
    DAT_REGION_DESCRIPTION region{};
    region.for_va = memory_;
    DAT_LMR_CONTEXT context = 0;
    DAT_RMR_CONTEXT remote = 0;
    DAT_VLEN size = 0;
    DAT_VADDR address = 0;
    if constexpr (kOtherIsVersion1) {
      return call<CreateLmr1>("dat_lmr_create")(ia_, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory_, pz,
                                                DAT_MEM_PRIV_LOCAL_READ_FLAG, lmr, &context, &remote, &size, &address);
    } else {
      return call<CreateLmr2>("dat_lmr_create")(ia_, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory_, pz,
                                                DAT_MEM_PRIV_LOCAL_READ_FLAG, 0, lmr, &context, &remote, &size,
                                                &address);
    }
  });
}

}  // namespace anydat::test
