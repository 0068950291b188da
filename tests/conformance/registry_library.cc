// SPDX-License-Identifier: BSD-3-Clause
// The life of a Provider's library: REG-INIT-1..8, REG-FINI-1..7, RES-11, RES-13, RES-14, REG-REM-7, REG-REM-8, ADM-4.
#include <dlfcn.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "conformance/registry_fixture.h"
#include "providers/probe.h"
#include "support/patience.h"
#include "support/threads.h"

namespace anydat::test {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

constexpr const char* kInit = "init net0 1.2 nonthreadsafe";
constexpr const char* kFini = "fini net0 1.2 nonthreadsafe";

Opened open_well(const std::string& name) {
  const Opened opened = open_ia(name);
  EXPECT_THAT(opened.rc, Succeeds()) << name;
  return opened;
}

// The gate of the probe, which must be loaded. Not by RTLD_DEFAULT: that would bind the probe to this program for ever.
probe_gate* gate_of_the_probe() {
  void* const library = dlopen(provider_library("probe").c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    throw std::runtime_error("the probe is not loaded");
  }
  auto* const gate = static_cast<probe_gate*>(dlsym(library, "probe_gate"));
  dlclose(library);
  return gate;
}

// RES-11, RES-13, RES-14, REG-INIT-1, REG-INIT-8, REG-FINI-1, REG-FINI-2, REG-FINI-3, REG-FINI-4, REG-REM-7,
// REG-REM-8, ADM-4 and IA-CLOSE-19. This registry finalises and unloads with the last use.
REGISTRY_TEST(RegistryLibrary, StaysAsLongAsSomethingIsOpen) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()));
  const Opened first = open_well("net0");
  const Opened second = open_well("net0");
  close_now(first);
  EXPECT_EQ(log.count("fini"), 0);
  EXPECT_EQ(adapter_name(second.ia), "net0");
  close_now(second);
  EXPECT_THAT(log.lines(), ElementsAre(kInit, "open net0", "open net0", "close net0", "close net0", kFini, "unloaded"));
  close_now(open_well("net0"));
  EXPECT_EQ(log.count(kInit), 2);
  EXPECT_EQ(log.count(kFini), 2);
  EXPECT_THAT(dat_ia_close(second.ia, DAT_CLOSE_DEFAULT), HasType(DAT_INVALID_HANDLE)) << "IA-CLOSE-16";
}

// REG-ADD-3, REG-INIT-8: a library may serve several names, each initialised and finalised for itself.
REGISTRY_TEST(RegistryLibrary, ServesSeveralNames) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()) +
                                entry_line("net1", provider_library("probe"), log.instance_data()));
  const Opened zero = open_well("net0");
  const Opened one = open_well("net1");
  EXPECT_EQ(adapter_name(zero.ia), "net0");
  EXPECT_EQ(adapter_name(one.ia), "net1");
  close_now(zero);
  EXPECT_EQ(log.count(kFini), 1);
  EXPECT_EQ(log.count("unloaded"), 0) << "the other name still needs it";
  EXPECT_EQ(adapter_name(one.ia), "net1");
  close_now(one);
  EXPECT_EQ(log.count("fini net1"), 1);
  EXPECT_EQ(log.count("unloaded"), 1);
}

// OBJ-7: several Providers at once.
REGISTRY_TEST(RegistryLibrary, SeveralMayBeInUse) {
  const ProbeLog log;
  const ProbeLog other_log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()) +
                                entry_line("net1", provider_library("probe_other"), other_log.instance_data()));
  const Opened zero = open_well("net0");
  const Opened one = open_well("net1");
  const Opened own = open_well("soft-lo");
  EXPECT_EQ(adapter_name(zero.ia), "net0");
  EXPECT_EQ(adapter_name(one.ia), "net1");
  EXPECT_EQ(adapter_name(own.ia), "soft-lo");
  close_now(one);
  EXPECT_THAT(other_log.lines(),
              ElementsAre(StartsWith("init"), "open net1", "close net1", StartsWith("fini"), "unloaded"));
  EXPECT_EQ(adapter_name(zero.ia), "net0");
  close_now(zero);
  close_now(own);
}

// REG-FINI-5: the registry removes what the Provider leaves.
REGISTRY_TEST(RegistryLibrary, ARegistrationThatIsLeftBehindIsRemoved) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data("stays")));
  close_now(open_well("net0"));
  EXPECT_EQ(log.count("unloaded"), 1);
  close_now(open_well("net0"));
  EXPECT_EQ(log.count(kInit), 2) << "its registration does not count any more";
  EXPECT_EQ(log.count("not registered"), 0);
}

// REG-FINI-6.
REGISTRY_TEST(RegistryLibrary, NeedNotHaveAFini) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe_no_fini"), log.instance_data()));
  for (int round = 1; round <= 2; ++round) {
    close_now(open_well("net0"));
    EXPECT_EQ(log.count(kInit), round);
    EXPECT_EQ(log.count("unloaded"), round);
  }
}

// REG-INIT-1 (third case), REG-REM-7: the Provider takes its registration back while the library stays loaded.
REGISTRY_TEST(RegistryLibrary, IsInitialisedAgainAfterItsNameWasRemoved) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()) +
                                entry_line("net1", provider_library("probe"), log.instance_data()));
  const Opened keeps_it_loaded = open_well("net1");
  close_now(open_well("net0"));
  const Opened again = open_well("net0");
  EXPECT_EQ(log.count(kInit), 2);
  EXPECT_EQ(log.count("unloaded"), 0);
  const DAT_PROVIDER* table = DAT_HANDLE_TO_PROVIDER(again.ia);
  const DAT_PROVIDER_INFO info = provider_info("net0");
  EXPECT_THAT(dat_registry_remove_provider(table, &info), HasType(DAT_PROVIDER_IN_USE));
  close_now(again);
  close_now(keeps_it_loaded);
}

// REG-INIT-4, REG-INIT-5, REG-ADD-10: dat_provider_init may call whatever it likes, also for the name it is called for.
REGISTRY_TEST(RegistryLibrary, MayCallBackWhileItIsInitialised) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data("reenters")));
  close_now(open_well("net0"));
  EXPECT_THAT(log.lines(), ElementsAre(std::string(kInit) + " reenters", "listed yes", "opened soft-lo", "not yet net0",
                                       "open net0", "close net0", kFini, "unloaded"));
}

// REG-INIT-7: the program has called it already.
REGISTRY_TEST(RegistryLibrary, MayBeInitialisedByTheProgramItself) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data("file")));
  void* const library = dlopen(provider_library("probe").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto init = reinterpret_cast<DAT_PROVIDER_INIT_FUNC>(dlsym(library, DAT_PROVIDER_INIT_FUNC_STR));
  const auto fini = reinterpret_cast<DAT_PROVIDER_FINI_FUNC>(dlsym(library, DAT_PROVIDER_FINI_FUNC_STR));
  ASSERT_NE(init, nullptr);
  const DAT_PROVIDER_INFO info = provider_info("net0");
  init(&info, log.instance_data("program").c_str());
  close_now(open_well("net0"));
  EXPECT_THAT(log.lines(), ElementsAre(std::string(kInit) + " program", "open net0", "close net0"))
      << "REG-INIT-8: no second init without a fini";
  fini(&info);
  EXPECT_EQ(open_well("net0").rc, static_cast<DAT_RETURN>(DAT_SUCCESS)) << "now the file's entry serves";
  EXPECT_EQ(log.count(std::string(kInit) + " file"), 1);
}

// IA-OPEN-27, REG-INIT-8: many threads open and close one name; init and fini alternate.
REGISTRY_TEST(RegistryLibrary, IsInitialisedOnceHoweverManyThreadsOpenIt) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong] {
      for (int i = 0; i < 50; ++i) {
        const Opened opened = open_ia("net0");
        wrong += opened.rc != DAT_SUCCESS;
        wrong += opened.rc == DAT_SUCCESS && dat_ia_close(opened.ia, DAT_CLOSE_DEFAULT) != DAT_SUCCESS;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  bool initialised = false;
  int open = 0;
  for (const std::string& line : log.lines()) {
    if (line.starts_with("init")) {
      EXPECT_FALSE(initialised) << "a second init";
      initialised = true;
    } else if (line.starts_with("fini")) {
      EXPECT_TRUE(initialised) << "a second fini";
      EXPECT_EQ(open, 0) << "finalised with an instance open";
      initialised = false;
    } else if (line.starts_with("open")) {
      EXPECT_TRUE(initialised) << "opened without init";
      ++open;
    } else if (line.starts_with("close")) {
      --open;
    }
  }
  EXPECT_FALSE(initialised);
  EXPECT_EQ(log.count("open"), 200);
}

// REG-FINI-7: a thread is still in a function of the Provider when its instance has been closed.
REGISTRY_TEST(RegistryLibrary, IsNotUnloadedUnderAThreadThatIsInside) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()));
  const Opened opened = open_well("net0");
  probe_gate* const gate = gate_of_the_probe();
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_evd_create(opened.ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd), Succeeds());
  DAT_RETURN waited = DAT_SUCCESS;
  WatchedThread waiter([&] {
    DAT_EVENT event;
    DAT_COUNT more = 0;
    waited = dat_evd_wait(evd, long_timeout(), 1, &event, &more);
  });
  EXPECT_TRUE(eventually([&] { return gate->inside == 1; }));
  EXPECT_THAT(dat_ia_close(opened.ia, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  EXPECT_EQ(log.count("fini"), 0);
  gate->open = 1;
  ASSERT_TRUE(waiter.ended_within(patience())) << "the thread is inside still";
  EXPECT_THAT(waited, HasType(DAT_ABORT));
  EXPECT_THAT(log.lines(), ElementsAre(kInit, "open net0", "close net0", kFini, "unloaded"));
}

// The same, and the name is opened again meanwhile: then nothing is unloaded.
REGISTRY_TEST(RegistryLibrary, IsKeptIfItIsOpenedAgainWhileAThreadIsInside) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()));
  const Opened first = open_well("net0");
  probe_gate* const gate = gate_of_the_probe();
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_evd_create(first.ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd), Succeeds());
  WatchedThread waiter([&] {
    DAT_EVENT event;
    DAT_COUNT more = 0;
    (void)dat_evd_wait(evd, long_timeout(), 1, &event, &more);
  });
  EXPECT_TRUE(eventually([&] { return gate->inside == 1; }));
  EXPECT_THAT(dat_ia_close(first.ia, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  const Opened second = open_well("net0");
  gate->open = 1;
  ASSERT_TRUE(waiter.ended_within(patience())) << "the thread is inside still";
  EXPECT_EQ(log.count(kInit), 1);
  EXPECT_EQ(log.count("fini"), 0);
  EXPECT_EQ(adapter_name(second.ia), "net0");
  close_now(second);
  EXPECT_EQ(log.count("unloaded"), 1);
}

// HND-2, HND-9: handles of a library that is gone are no handles any more.
REGISTRY_TEST(RegistryLibrary, TakesItsHandlesWithIt) {
  const ProbeLog log;
  const StaticRegistryText conf(entry_line("net0", provider_library("probe"), log.instance_data()));
  const Opened opened = open_well("net0");
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_evd_create(opened.ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd), Succeeds());
  EXPECT_EQ(dat_evd_enable(evd), static_cast<DAT_RETURN>(DAT_NOT_IMPLEMENTED)) << "RC-7: the probe has not got it";
  close_now(opened);
  EXPECT_EQ(log.count("unloaded"), 1);
  EXPECT_THAT(dat_evd_enable(evd), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_evd_free(evd), HasType(DAT_INVALID_HANDLE));
  DAT_EVD_HANDLE another = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_evd_create(opened.ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &another),
              HasType(DAT_INVALID_HANDLE));
}

}  // namespace
}  // namespace anydat::test
