// SPDX-License-Identifier: BSD-3-Clause
// dat_ia_open: section 4.1 of part 1. What finds the provider of a name is chapter 2.
#include <arpa/inet.h>
#include <dirent.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <climits>
#include <cstring>
#include <map>
#include <set>

#include "evd_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

// Descriptors and threads of this process.
struct Footprint {
  std::size_t descriptors;
  std::size_t threads;
  bool operator==(const Footprint&) const = default;
};

std::size_t entries_of(const char* path) {
  std::size_t count = 0;
  DIR* const directory = ::opendir(path);
  while (::readdir(directory) != nullptr) {
    ++count;
  }
  ::closedir(directory);
  return count;
}

Footprint footprint() {
  return {entries_of("/proc/self/fd"), entries_of("/proc/self/task")};
}

class IaOpen : public testing::TestWithParam<Wire> {
 protected:
  DAT_RETURN open(DAT_COUNT length, DAT_EVD_HANDLE* async_evd) { return open_ia(GetParam(), length, async_evd, &ia_); }
  DAT_RETURN open_name(std::string name) {
    async_evd_ = DAT_HANDLE_NULL;
    return dat_ia_open(name.data(), 8, &async_evd_, &ia_);
  }
  void close() {
    EXPECT_THAT(dat_ia_close(ia_, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
    ia_ = DAT_HANDLE_NULL;
  }
  DAT_EVD_HANDLE async_evd_of(DAT_IA_HANDLE ia) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    require(dat_ia_query(ia, &evd, 0, nullptr, 0, nullptr), "dat_ia_query");
    return evd;
  }
  // Makes one async event about an object of the instance, whose handle it returns, and which is gone afterwards.
  static DAT_HANDLE cause_async_event(DAT_IA_HANDLE ia) {
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
    DAT_SRQ_ATTR attr{.max_recv_dtos = 1, .max_recv_iov = 1, .low_watermark = 1};
    require(dat_pz_create(ia, &pz), "dat_pz_create");
    require(dat_srq_create(ia, pz, &attr, &srq), "dat_srq_create");
    require(dat_srq_free(srq), "dat_srq_free");
    require(dat_pz_free(pz), "dat_pz_free");
    return srq;
  }

  DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd_ = DAT_HANDLE_NULL;
};

// IA-OPEN-1, OBJ-2
TEST_P(IaOpen, EachOpenGivesAnInstanceOfItsOwn) {
  Ia first(GetParam());
  Ia second(GetParam());
  EXPECT_NE(first.get(), DAT_HANDLE_NULL);
  EXPECT_NE(first.get(), second.get());
  EXPECT_NE(first.async_evd(), second.async_evd());
  const Pz a(first);
  const Pz b(second);
  EXPECT_STREQ(first.attributes().adapter_name, second.attributes().adapter_name);
}

// OBJ-2: also in another process at the same time.
TEST_P(IaOpen, AnotherProcessMayHaveItOpenToo) {
  const Ia mine(GetParam());
  PeerProcess other("ia_opener", GetParam());
  EXPECT_EQ(other.channel().hear(), "open");
  const Ia another(GetParam());
  other.channel().say("close");
  EXPECT_EQ(other.wait_exit(), 0);
  const Pz pz(mine);
}

void play_opener(RoleContext& context) {
  const Ia ia(context.wire);
  context.parent.say("open");
  context.parent.hear();
}
const Role kOpener("ia_opener", play_opener);

// OBJ-3: each port is an adapter with its own name and address: the soft adapter of a network device has the address of
// that device.
TEST_P(IaOpen, EachNetworkDeviceIsAnAdapterWithItsOwnAddress) {
  ifaddrs* list = nullptr;
  ASSERT_EQ(::getifaddrs(&list), 0);
  std::map<std::string, std::set<in_addr_t>> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET && (entry->ifa_flags & IFF_UP) != 0) {
      sockaddr_in address{};
      std::memcpy(&address, entry->ifa_addr, sizeof address);
      addresses[entry->ifa_name].insert(address.sin_addr.s_addr);
    }
  }
  ::freeifaddrs(list);
  ASSERT_FALSE(addresses.empty());
  for (const auto& [device, own] : addresses) {
    ASSERT_THAT(open_name("soft-" + device), Succeeds()) << device;
    DAT_IA_ATTR attributes{};
    ASSERT_THAT(dat_ia_query(ia_, nullptr, DAT_IA_FIELD_ALL, &attributes, 0, nullptr), Succeeds());
    EXPECT_EQ("soft-" + device, attributes.adapter_name);
    ASSERT_EQ(attributes.ia_address_ptr->sa_family, AF_INET);
    sockaddr_in address{};
    std::memcpy(&address, attributes.ia_address_ptr, sizeof address);
    EXPECT_EQ(own.count(address.sin_addr.s_addr), 1u) << device;
    close();
  }
}

// IA-OPEN-2
TEST_P(IaOpen, WhatIsMadeThroughItGoesAwayWithIt) {
  ASSERT_THAT(open(8, &async_evd_), Succeeds());
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_pz_create(ia_, &pz), Succeeds());
  DAT_PZ_PARAM param{};
  ASSERT_THAT(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.ia_handle, ia_);
  ASSERT_THAT(dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  EXPECT_THAT(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
}

// IA-OPEN-3, IA-OPEN-4, IA-OPEN-5, IA-QUERY-1
TEST_P(IaOpen, MakesAnEmptyEnabledAsyncEvdWhenGivenNone) {
  ASSERT_THAT(open(8, &async_evd_), Succeeds());
  ASSERT_NE(async_evd_, DAT_HANDLE_NULL);
  EXPECT_EQ(async_evd_of(ia_), async_evd_);
  const DAT_EVD_PARAM param = query_evd(async_evd_);
  EXPECT_EQ(param.ia_handle, ia_);
  EXPECT_EQ(param.cno_handle, DAT_HANDLE_NULL);
  EXPECT_EQ(static_cast<unsigned>(param.evd_state),
            static_cast<unsigned>(DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE | DAT_EVD_STATE_CONFIG_THRESHOLD));
  EXPECT_NE(param.evd_flags & DAT_EVD_ASYNC_FLAG, 0);
  EXPECT_EQ(queued(async_evd_), 0);
  const DAT_HANDLE about = cause_async_event(ia_);
  EXPECT_EQ(
      expect_event(async_evd_, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR).event_data.asynch_error_event_data.dat_handle,
      about);
  close();
}

// IA-OPEN-6
TEST_P(IaOpen, AsyncQueueHoldsWhatWasAsked) {
  for (const DAT_COUNT length : {1, 2, 9, 300}) {
    async_evd_ = DAT_HANDLE_NULL;
    ASSERT_THAT(open(length, &async_evd_), Succeeds());
    const DAT_COUNT reported = query_evd(async_evd_).evd_qlen;
    EXPECT_GE(reported, length);
    for (DAT_COUNT i = 0; i < reported; ++i) {
      cause_async_event(ia_);
    }
    EXPECT_EQ(drain(async_evd_), reported);
    close();
  }
}

// IA-OPEN-7, OBJ-6
TEST_P(IaOpen, AsyncEvdIsAnEvdLikeAnyOther) {
  const Ia ia(GetParam(), 8);
  const DAT_EVD_HANDLE evd = ia.async_evd();
  const Cno cno(ia);
  ASSERT_THAT(dat_evd_modify_cno(evd, cno.get()), Succeeds());
  EXPECT_EQ(query_evd(evd).cno_handle, cno.get());
  cause_async_event(ia.get());
  EXPECT_EQ(wait_cno(cno.get(), long_timeout()).evd, evd);
  ASSERT_THAT(dat_evd_disable(evd), Succeeds());
  cause_async_event(ia.get());
  EXPECT_FALSE(take_trigger(cno.get()));
  ASSERT_THAT(dat_evd_enable(evd), Succeeds());
  ASSERT_THAT(dat_evd_resize(evd, 100), Succeeds());
  EXPECT_GE(query_evd(evd).evd_qlen, 100);
  ASSERT_THAT(dat_evd_set_unwaitable(evd), Succeeds());
  EXPECT_THAT(wait_evd(evd, 0).rc, HasType(DAT_INVALID_STATE));
  ASSERT_THAT(dat_evd_clear_unwaitable(evd), Succeeds());
  EXPECT_THAT(wait_evd(evd, 0).rc, Succeeds());
  EXPECT_TRUE(poll_event(evd));
  EXPECT_THAT(dat_evd_free(evd), HasType(DAT_INVALID_STATE)) << "only the close frees it";
  ASSERT_THAT(dat_evd_modify_cno(evd, DAT_HANDLE_NULL), Succeeds());
}

// IA-OPEN-9, IA-OPEN-26
TEST_P(IaOpen, NewAsyncQueueMustHaveAPositiveLength) {
  for (const DAT_COUNT length : {0, -1, INT_MIN}) {
    ia_ = reinterpret_cast<DAT_IA_HANDLE>(std::uintptr_t{1});
    EXPECT_THAT(open(length, &async_evd_), HasType(DAT_INVALID_PARAMETER)) << length;
    EXPECT_EQ(async_evd_, DAT_HANDLE_NULL);
    EXPECT_EQ(ia_, DAT_HANDLE_NULL);
  }
}

// IA-OPEN-10, IA-OPEN-26
TEST_P(IaOpen, NewAsyncQueueMayNotBeLongerThanTheAdapterAllows) {
  const DAT_COUNT longest = Ia(GetParam()).attributes().max_evd_qlen;
  for (const DAT_COUNT length : {longest + 1, INT_MAX}) {
    EXPECT_THAT(open(length, &async_evd_), HasType(DAT_INSUFFICIENT_RESOURCES)) << length;
    EXPECT_EQ(async_evd_, DAT_HANDLE_NULL);
  }
  ASSERT_THAT(open(longest, &async_evd_), Succeeds());
  close();
}

// IA-OPEN-11, IA-OPEN-14
TEST_P(IaOpen, LengthIsIgnoredWhenNoEvdIsMade) {
  const Ia owner(GetParam());
  for (const DAT_COUNT length : {0, -5, INT_MAX, INT_MIN}) {
    DAT_EVD_HANDLE shared = owner.async_evd();
    ASSERT_THAT(open(length, &shared), Succeeds()) << length;
    EXPECT_EQ(shared, owner.async_evd());
    EXPECT_EQ(async_evd_of(ia_), owner.async_evd());
    close();
    DAT_EVD_HANDLE elsewhere = DAT_EVD_ASYNC_EXISTS;
    ASSERT_THAT(open(length, &elsewhere), Succeeds()) << length;
    close();
  }
}

// IA-OPEN-13, IA-OPEN-14, IA-OPEN-26, HND-3, EVM-3
TEST_P(IaOpen, SharedHandleMustBeALiveAsyncEvdOfTheAdapter) {
  const Ia owner(GetParam());
  const Evd plain(owner, flags(0x0F1), 4);
  const Pz pz(owner);
  const Cno cno(owner);
  Evd freed(owner, DAT_EVD_ASYNC_FLAG, 4);
  const DAT_EVD_HANDLE stale = freed.get();
  freed.reset();
  DAT_EVD_HANDLE of_another_adapter = DAT_HANDLE_NULL;
  DAT_IA_HANDLE another = DAT_HANDLE_NULL;
  std::string other_name = GetParam().ia_name == "soft" ? "soft-lo" : "soft";
  ASSERT_THAT(dat_ia_open(other_name.data(), 8, &of_another_adapter, &another), Succeeds());
  const Footprint before = footprint();
  for (const DAT_HANDLE bad : {plain.get(), pz.get(), cno.get(), owner.get(), stale, DAT_HANDLE{DAT_EVD_OUT_OF_SCOPE},
                               of_another_adapter, DAT_HANDLE{&other_name}}) {
    DAT_EVD_HANDLE shared = bad;
    const DAT_RETURN rc = open(8, &shared);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EVD_ASYNC));
    EXPECT_EQ(shared, bad);
    EXPECT_EQ(ia_, DAT_HANDLE_NULL);
  }
  EXPECT_EQ(footprint(), before) << "no instance remains";
  EXPECT_THAT(dat_ia_close(another, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
}

// IA-OPEN-15, IA-OPEN-20, EVT-36, IA-QUERY-1: one EVD for several instances, each event on it once.
TEST_P(IaOpen, SharedEvdGetsTheAsyncEventsOfAll) {
  const Ia owner(GetParam());
  DAT_EVD_HANDLE shared = owner.async_evd();
  ASSERT_THAT(open(0, &shared), Succeeds());
  EXPECT_EQ(async_evd_of(ia_), owner.async_evd());
  for (const DAT_IA_HANDLE ia : {ia_, owner.get(), ia_}) {
    const DAT_HANDLE about = cause_async_event(ia);
    const DAT_EVENT event = expect_event(owner.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
    EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, about);
    EXPECT_EQ(event.evd_handle, owner.async_evd());
    EXPECT_FALSE(poll_event(owner.async_evd())) << "no duplicate";
  }
  close();
}

// IA-OPEN-3, IA-OPEN-15: the consumer may also bring an EVD that it made itself.
TEST_P(IaOpen, ConsumersOwnEvdMayBeTheAsyncEvd) {
  const Ia owner(GetParam());
  const Evd own(owner, flags(DAT_EVD_ASYNC_FLAG | DAT_EVD_SOFTWARE_FLAG), 4);
  DAT_EVD_HANDLE shared = own.get();
  ASSERT_THAT(open(0, &shared), Succeeds());
  const DAT_HANDLE about = cause_async_event(ia_);
  EXPECT_EQ(
      expect_event(own.get(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR).event_data.asynch_error_event_data.dat_handle,
      about);
  cause_async_event(owner.get());
  expect_event(owner.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
  EXPECT_FALSE(poll_event(own.get()));
  close();
}

// IA-OPEN-16, IA-OPEN-17, IA-OPEN-18, IA-QUERY-1, ruling A30: whether there is one elsewhere is not looked at; on the
// first open of the process too.
TEST_P(IaOpen, AsyncEventsOfAnInstanceWhoseEvdIsElsewhereComeNowhere) {
  DAT_EVD_HANDLE elsewhere = DAT_EVD_ASYNC_EXISTS;
  ASSERT_THAT(open(8, &elsewhere), Succeeds());
  EXPECT_EQ(elsewhere, DAT_HANDLE{DAT_EVD_OUT_OF_SCOPE});
  EXPECT_EQ(async_evd_of(ia_), DAT_HANDLE{DAT_EVD_OUT_OF_SCOPE});
  {
    const Ia other(GetParam());
    cause_async_event(ia_);
    cause_async_event(other.get());
    expect_event(other.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
    EXPECT_FALSE(poll_event(other.async_evd()));
  }
  close();
}

// IA-OPEN-19, EVT-36: an event about one object goes to the EVD of the instance that owns it. Events that concern the
// adapter as a whole do not occur on an adapter of software.
TEST_P(IaOpen, EventsAboutOneObjectGoToItsOwnersEvdOnly) {
  const Ia first(GetParam());
  const Ia second(GetParam());
  const DAT_HANDLE about = cause_async_event(first.get());
  EXPECT_EQ(expect_event(first.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR)
                .event_data.asynch_error_event_data.dat_handle,
            about);
  EXPECT_FALSE(poll_event(second.async_evd()));
}

// IA-OPEN-21, IA-OPEN-23
TEST_P(IaOpen, NameMustBeThereAndShorterThan256) {
  for (const std::size_t length : {256u, 257u, 5000u}) {
    EXPECT_THAT(open_name(std::string(length, 'x')), HasType(DAT_INVALID_PARAMETER)) << length;
    EXPECT_EQ(ia_, DAT_HANDLE_NULL);
  }
  EXPECT_THAT(open_name(std::string(255, 'x')), HasType(DAT_PROVIDER_NOT_FOUND)) << "long enough, and unknown";
  EXPECT_THAT(dat_ia_open(nullptr, 8, &async_evd_, &ia_), HasType(DAT_INVALID_PARAMETER));
}

// IA-OPEN-22, ARG-2, ruling A29
TEST_P(IaOpen, ResultsMayNotBeNull) {
  std::string name = GetParam().ia_name;
  DAT_RETURN rc = dat_ia_open(name.data(), 8, nullptr, &ia_);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG3));
  rc = dat_ia_open(name.data(), 8, &async_evd_, nullptr);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG4));
  EXPECT_EQ(async_evd_, DAT_HANDLE_NULL);
}

// IA-OPEN-23, IA-OPEN-26
TEST_P(IaOpen, UnknownNamesAreNotFound) {
  for (const char* name : {"", "no-such-adapter", "soft-no-such-device", "SOFT-LO", "soft-lo ", " soft-lo", "soft-"}) {
    const DAT_RETURN rc = open_name(name);
    EXPECT_THAT(rc, HasType(DAT_PROVIDER_NOT_FOUND)) << '"' << name << '"';
    EXPECT_THAT(rc, HasSubtype(DAT_NAME_NOT_REGISTERED)) << '"' << name << '"';
    EXPECT_EQ(async_evd_, DAT_HANDLE_NULL);
    EXPECT_EQ(ia_, DAT_HANDLE_NULL);
  }
}

// IA-OPEN-25, IA-OPEN-26
TEST_P(IaOpen, LackOfDescriptorsIsSaidAndLeavesNothingBehind) {
  { const Ia warm_up(GetParam()); }
  const Footprint before = footprint();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  // From none to enough: it fails at another descriptor each time, until it succeeds.
  bool opened = false;
  for (rlim_t more = 0; more < 64 && !opened; ++more) {
    rlimit low = limit;
    low.rlim_cur = static_cast<rlim_t>(before.descriptors) + more;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    async_evd_ = DAT_HANDLE_NULL;
    const DAT_RETURN rc = open(8, &async_evd_);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (rc == DAT_SUCCESS) {
      opened = true;
      close();
    } else {
      EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES)) << more;
      EXPECT_EQ(async_evd_, DAT_HANDLE_NULL);
      EXPECT_EQ(ia_, DAT_HANDLE_NULL);
    }
    EXPECT_EQ(footprint(), before) << more;
  }
  EXPECT_TRUE(opened);
}

// IA-OPEN-26, IA-CLOSE-4, RES-12
TEST_P(IaOpen, OpeningAndClosingLeavesNothingBehind) {
  { const Ia warm_up(GetParam()); }
  const Footprint before = footprint();
  for (int i = 0; i < 20; ++i) {
    async_evd_ = DAT_HANDLE_NULL;
    ASSERT_THAT(open(8, &async_evd_), Succeeds());
    cause_async_event(ia_);
    ASSERT_THAT(dat_ia_close(ia_, i % 2 == 0 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  }
  EXPECT_EQ(footprint(), before);
}

// IA-OPEN-27
TEST_P(IaOpen, ManyThreadsOpenAtOnce) {
  const ScopedEnv env(GetParam().env);
  in_threads(4, [&](int) {
    for (int i = 0; i < 10; ++i) {
      std::string name = GetParam().ia_name;
      DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
      DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
      EXPECT_THAT(dat_ia_open(name.data(), 4, &evd, &ia), Succeeds());
      const DAT_HANDLE about = cause_async_event(ia);
      EXPECT_EQ(
          expect_event(evd, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR).event_data.asynch_error_event_data.dat_handle,
          about);
      EXPECT_THAT(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
    }
  });
}

// IA-OPEN-29, IA-OPEN-30, IA-ATTR-1, ruling A28: the prefix of another platform changes nothing, and is never missed.
TEST_P(IaOpen, PrefixForRelaxedOrderingIsRemoved) {
  ASSERT_THAT(open_name("RO_AWARE_" + GetParam().ia_name), Succeeds());
  DAT_IA_ATTR attributes{};
  ASSERT_THAT(dat_ia_query(ia_, nullptr, DAT_IA_FIELD_ALL, &attributes, 0, nullptr), Succeeds());
  EXPECT_EQ(attributes.adapter_name, GetParam().ia_name);
  close();
  EXPECT_THAT(open_name("RO_AWARE_no-such-adapter"), HasType(DAT_PROVIDER_NOT_FOUND));
  EXPECT_THAT(open_name("RO_AWARE_"), HasType(DAT_PROVIDER_NOT_FOUND));
}

// IA-OPEN-24: what the registry lists can be opened, as far as it is ours and of this version.
TEST_P(IaOpen, ListedNamesOpen) {
  DAT_COUNT count = 0;
  dat_registry_list_providers(0, &count, nullptr);
  std::vector<DAT_PROVIDER_INFO> infos(static_cast<std::size_t>(count));
  std::vector<DAT_PROVIDER_INFO*> pointers;
  for (DAT_PROVIDER_INFO& info : infos) {
    pointers.push_back(&info);
  }
  if (count == 0) GTEST_SKIP() << "the static registry of this host lists no provider";
  ASSERT_THAT(dat_registry_list_providers(count, &count, pointers.data()), Succeeds());
  for (const DAT_PROVIDER_INFO& info : infos) {
    const std::string name = info.ia_name;
    if (!name.starts_with("soft")) continue;
    EXPECT_THAT(dat_ia_openv(const_cast<char*>(info.ia_name), 8, &async_evd_, &ia_, info.dapl_version_major,
                             info.dapl_version_minor, info.is_thread_safe),
                Succeeds())
        << name;
    close();
    async_evd_ = DAT_HANDLE_NULL;
  }
}

ANYDAT_OVER_ALL_WIRES(IaOpen);

}  // namespace
}  // namespace anydat::test
