// SPDX-License-Identifier: BSD-3-Clause
// The library of 2.0: its attributes, its numbers, what it refuses, and that of 1.2 beside it in one process.
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
// Needs the types of the version.
#include <anydat/anydat.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <map>
#include <string>
#include <vector>

#include "face20/fixture.h"

// Declared by no header of 2.0 (D2-TBL-3).
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE, DAT_IA_HANDLE*);

namespace anydat::test {
namespace {

using Dat2Library = Dat2;
INSTANTIATE_TEST_SUITE_P(Wires, Dat2Library, testing::ValuesIn(all_wires()), wire_name);

// D2-IA-1, D2-IA-5, D2-TYPE-4, D2-HA-1.
TEST_P(Dat2Library, TheAttributesAreThoseOfTheVersion) {
  DAT_IA_ATTR attr;
  DAT_PROVIDER_ATTR provider;
  std::memset(static_cast<void*>(&attr), 0xff, sizeof attr);
  std::memset(static_cast<void*>(&provider), 0xff, sizeof provider);
  ASSERT_THAT(dat_ia_query(server.ia.get(), nullptr, DAT_IA_FIELD_IA_MAX_EVD_QLEN, &attr,
                           DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR, &provider),
              Succeeds());
  EXPECT_EQ(provider.dapl_version_major, 2U);
  EXPECT_EQ(provider.dapl_version_minor, 0U);
  EXPECT_GE(provider.max_private_data_size, 64);
  EXPECT_GE(provider.num_provider_specific_attr, 1);
  EXPECT_EQ(provider.ha_supported, DAT_FALSE);
  EXPECT_EQ(provider.ha_loadbalancing, DAT_HA_LB_NONE);
  EXPECT_EQ(provider.is_signal_safe, DAT_FALSE);
  EXPECT_EQ(provider.supports_multipath, DAT_FALSE);
  EXPECT_EQ(provider.rdma_read_lmr_rmr_context_exposure, DAT_FALSE);
  EXPECT_GE(attr.max_lmr_block_size, 0x80000000U);
  if (GetParam().ia_name.starts_with("soft")) {
    EXPECT_GE(attr.max_message_size, 0x80000000U);  // of a device it is the device's
  }
  EXPECT_EQ(attr.extension_version, attr.extension_supported == DAT_EXTENSION_IB ? 209 : 0);
}

// D2-IA-4, D2-CSP-5, D2-CNO-12, D2-LMR-8: a mask that goes further than the version is refused under DAT_COMPAT=strict
// (GEN-7), and asks for nothing otherwise.
TEST_P(Dat2Library, MasksReachAsFarAsTheVersion) {
  const std::map<std::string, std::string> variables{{"DAT_COMPAT", "strict"}};
  const ScopedEnv environment(variables);
  Side strict(GetParam());
  for (Side* const side : {&strict, &server}) {
    const auto expect = [&](const char* name, const auto& query, auto all, DAT_UINT64 next_bit) {
      EXPECT_THAT(query(all), Succeeds()) << name;
      const DAT_RETURN beyond = query(static_cast<decltype(all)>(next_bit));
      if (side == &strict) {
        EXPECT_THAT(beyond, HasType(DAT_INVALID_PARAMETER)) << name;
      } else {
        EXPECT_THAT(beyond, Succeeds()) << name;
      }
    };
    const DAT_IA_HANDLE ia = side->ia.get();
    const Lmr lmr(side->ia, side->pz, 64);
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    DAT_FD fd = -1;
    require(dat_cno_fd_create(ia, &fd, &cno), "dat_cno_fd_create");
    DAT_COMM comm{AF_INET, SOCK_STREAM, 0};
    sockaddr_in address{};
    std::memcpy(&address, side->ia.attributes().ia_address_ptr, sizeof address);
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    require(dat_csp_create(ia, &comm, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), side->requests.get(), &csp),
            "dat_csp_create");
    DAT_IA_ATTR attr;
    DAT_PROVIDER_ATTR provider;
    DAT_LMR_PARAM lmr_param;
    DAT_CNO_PARAM cno_param;
    DAT_CSP_PARAM csp_param;
    expect(
        "attributes", [&](auto mask) { return dat_ia_query(ia, nullptr, mask, &attr, 0, nullptr); }, DAT_IA_FIELD_ALL,
        DAT_IA_FIELD_ALL + 1);
    expect(
        "provider", [&](auto mask) { return dat_ia_query(ia, nullptr, 0, nullptr, mask, &provider); },
        DAT_PROVIDER_FIELD_ALL, DAT_PROVIDER_FIELD_ALL + 1);
    expect(
        "lmr", [&](auto mask) { return dat_lmr_query(lmr.get(), mask, &lmr_param); }, DAT_LMR_FIELD_ALL, 0x800);
    expect(
        "cno", [&](auto mask) { return dat_cno_query(cno, mask, &cno_param); }, DAT_CNO_FIELD_ALL, 0x8);
    expect(
        "csp", [&](auto mask) { return dat_csp_query(csp, mask, &csp_param); }, DAT_CSP_FIELD_ALL, 0x10);
    EXPECT_THAT(dat_csp_free(csp), Succeeds());
    EXPECT_THAT(dat_cno_free(cno), Succeeds());
  }
}

// D2-SRQ-1, D2-SRQ-2, D2-SRQ-3: until it is freed, whatever becomes of its endpoints.
TEST_P(Dat2Library, AnSrqIsOperational) {
  static_assert(DAT_SRQ_STATE_OPERATIONAL == 1);
  const Srq srq(server.ia, server.pz, 16);
  EXPECT_EQ(srq.query().srq_state, DAT_SRQ_STATE_OPERATIONAL);
  const Connection connection = connect_pair(server, srq, client);
  require(dat_ep_disconnect(connection.server.get(), DAT_CLOSE_ABRUPT_FLAG), "disconnect");
  (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(srq.query().srq_state, DAT_SRQ_STATE_OPERATIONAL);
  const Lmr memory(server.ia, server.pz, 64);
  DAT_LMR_TRIPLET segment = memory.triplet();
  EXPECT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, {}), Succeeds());
}

// D2-RC-3, D2-RC-4: positions of arguments and states, in the numbers of 2.0.
TEST_P(Dat2Library, SubtypesHaveTheNumbersOfTheVersion) {
  static_assert(DAT_INVALID_ARG1 == 37);
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  EXPECT_EQ(dat_evd_create(server.ia.get(), 8, DAT_HANDLE_NULL, static_cast<DAT_EVD_FLAGS>(0x10000), &evd),
            static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INVALID_PARAMETER | DAT_INVALID_ARG4);
  const Ep ep(server);
  EXPECT_EQ(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG),
            static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INVALID_STATE | DAT_INVALID_STATE_EP_UNCONNECTED);
  EXPECT_EQ(dat_srq_free(ep.get()),
            static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_SRQ);
}

// D2-RC-1, D2-RC-2, D2-RC-3, D2-RC-5.
TEST(Dat2Strerror, KnowsTheNumbersOfTheVersion) {
  const auto name = [](DAT_RETURN type, DAT_RETURN subtype) {
    const char* major = nullptr;
    const char* minor = nullptr;
    EXPECT_THAT(dat_strerror(static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | type | subtype, &major, &minor), Succeeds());
    return std::string(major) + " " + minor;
  };
  EXPECT_EQ(name(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP), "DAT_INVALID_HANDLE DAT_INVALID_HANDLE_CSP");
  EXPECT_EQ(name(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1), "DAT_INVALID_PARAMETER DAT_INVALID_ARG1");
  EXPECT_EQ(name(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_SHUTDOWN),
            "DAT_INVALID_STATE DAT_INVALID_STATE_SRQ_SHUTDOWN");
  EXPECT_EQ(name(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ), "DAT_PRIVILEGES_VIOLATION DAT_PRIVILEGES_READ");
  EXPECT_EQ(name(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND),
            "DAT_PROVIDER_NOT_FOUND DAT_THREAD_SAFETY_NOT_FOUND");
  EXPECT_EQ(name(DAT_PORT_IN_USE, 0), "DAT_PORT_IN_USE ");
  EXPECT_EQ(name(DAT_COMM_NOT_SUPPORTED, 0), "DAT_COMM_NOT_SUPPORTED ");
  EXPECT_EQ(name(DAT_RESERVED_LMR, 0), "DAT_RESERVED_LMR ");
  EXPECT_EQ(name(DAT_EXTENSION_BASE, 0), "DAT_EXTENSION_BASE ");
  const char* major = nullptr;
  const char* minor = nullptr;
  EXPECT_THAT(dat_strerror(0x68, &major, &minor), HasType(DAT_INVALID_PARAMETER)) << "one behind the last subtype";
  EXPECT_THAT(dat_strerror(DAT_NOT_IMPLEMENTED, &major, nullptr), Succeeds());
  EXPECT_STREQ(major, "DAT_NOT_IMPLEMENTED");
}

// D2-EXT-2, D2-EXT-4.
TEST_P(Dat2Library, OperationsThatAreNotSupportedSaySo) {
  const Ep ep(server);
  std::vector<int> operations{3, 6, 0x19, 0x1c, 0x1d, 99, -1};
  if (server.ia.attributes().extension_supported == DAT_EXTENSION_NONE) operations.insert(operations.end(), {0, 1, 2});
  for (const int operation : operations) {
    EXPECT_THAT(dat_extension_op(ep.get(), operation), HasType(DAT_MODEL_NOT_SUPPORTED)) << operation;
    EXPECT_THAT(dat_extension_op(DAT_HANDLE_NULL, operation), HasType(DAT_INVALID_HANDLE)) << operation;
  }
  EXPECT_THAT(dat_extension_op(ep.get(), DAT_IB_UD_SEND_OP), HasType(DAT_MODEL_NOT_SUPPORTED));
  EXPECT_NE(std::string(anydat_last_error()).find("connections only"), std::string::npos) << anydat_last_error();
  EXPECT_THAT(DAT_HANDLE_TO_PROVIDER(ep.get())->handle_extendedop_func(ep.get(), 3, {}),
              HasType(DAT_MODEL_NOT_SUPPORTED))
      << "D2-EXT-9";
}

// D2-TBL-3.
TEST_P(Dat2Library, AnIaHandleIsItsOwnTranslation) {
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  EXPECT_THAT(dats_get_ia_handle(server.ia.get(), &ia), Succeeds());
  EXPECT_EQ(ia, server.ia.get());
  EXPECT_THAT(dats_get_ia_handle(server.pz.get(), &ia), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dats_get_ia_handle(DAT_HANDLE_NULL, &ia), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dats_get_ia_handle(server.ia.get(), nullptr), HasType(DAT_INVALID_PARAMETER));
}

// D2-HA-2, D2-HA-4, D2-HA-5.
TEST_P(Dat2Library, NoTwoAdaptersAreRelated) {
  char soft[] = "soft";
  char loopback_device[] = "soft-lo";
  char unknown[] = "no such adapter";
  DAT_HA_RELATIONSHIP relationship = DAT_HA_UNKNOWN;
  EXPECT_THAT(dat_registry_providers_related(soft, loopback_device, &relationship), Succeeds());
  EXPECT_EQ(relationship, DAT_HA_FALSE);
  const DAT_RETURN rc = dat_registry_providers_related(soft, unknown, &relationship);
  EXPECT_THAT(rc, HasType(DAT_PROVIDER_NOT_FOUND));
  EXPECT_THAT(rc, HasSubtype(DAT_NAME_NOT_REGISTERED));
  // A device that cannot be looked for, for want of a descriptor, is not said to be none.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const DAT_RETURN without = dat_registry_providers_related(soft, loopback_device, &relationship);
  const DAT_RETURN unknown_without = dat_registry_providers_related(soft, unknown, &relationship);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(without, HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_THAT(unknown_without, HasType(DAT_PROVIDER_NOT_FOUND));
  EXPECT_THAT(dat_registry_providers_related(nullptr, soft, &relationship), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_registry_providers_related(soft, nullptr, &relationship), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_registry_providers_related(soft, soft, nullptr), HasType(DAT_INVALID_PARAMETER));
  DAT_BOOLEAN related = DAT_TRUE;
  EXPECT_THAT(DAT_HANDLE_TO_PROVIDER(server.ia.get())->ia_ha_related_func(server.ia.get(), soft, &related), Succeeds());
  EXPECT_EQ(related, DAT_FALSE);
}

// D2-HDR-10: the library of 1.2 in the same process is another copy, whose handles are none here and the reverse.
TEST_P(Dat2Library, HandlesOfTheOtherVersionAreRefused) {
  void* other = dlopen(ANYDAT_LIBDAT, RTLD_NOW | RTLD_LOCAL);
  if (!other) other = dlopen("libdat.so.1", RTLD_NOW | RTLD_LOCAL);  // the program has been taken elsewhere
  ASSERT_NE(other, nullptr) << dlerror();
  const auto open = reinterpret_cast<DAT_RETURN (*)(DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*,
                                                    DAT_UINT32, DAT_UINT32, DAT_BOOLEAN)>(dlsym(other, "dat_ia_openv"));
  const auto close = reinterpret_cast<decltype(&dat_ia_close)>(dlsym(other, "dat_ia_close"));
  const auto free_pz = reinterpret_cast<decltype(&dat_pz_free)>(dlsym(other, "dat_pz_free"));
  ASSERT_NE(open, nullptr);
  ASSERT_NE(reinterpret_cast<void*>(open), reinterpret_cast<void*>(&dat_ia_openv));
  std::string name = GetParam().ia_name;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  EXPECT_NE(open(name.data(), 8, &async_evd, &ia, 2, 0, DAT_FALSE), DAT_SUCCESS) << "it is no Provider of 2.0";
  ASSERT_EQ(open(name.data(), 8, &async_evd, &ia, 1, 2, DAT_FALSE), DAT_SUCCESS);
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_pz_create(ia, &pz), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_evd_free(async_evd), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), HasType(DAT_INVALID_HANDLE));
  EXPECT_EQ(free_pz(server.pz.get()) & DAT_TYPE_MASK, static_cast<DAT_RETURN>(DAT_INVALID_HANDLE));
  EXPECT_EQ(close(server.ia.get(), DAT_CLOSE_ABRUPT_FLAG) & DAT_TYPE_MASK, static_cast<DAT_RETURN>(DAT_INVALID_HANDLE));
  EXPECT_EQ(close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
}

}  // namespace
}  // namespace anydat::test
