// SPDX-License-Identifier: BSD-3-Clause
// D2-EXT-2: every operation of the extension that is not there is refused in a sentence that names it, to a caller that
// asks for the last one and in the log (api_log_test.cc shows that they are the same).
#include <anydat/anydat.h>
#include <dat2/dat_ib_extensions.h>
#include <gmock/gmock.h>

#include <map>
#include <ostream>
#include <string>
#include <utility>

#include "face20/fixture.h"
#include "support/captured_errors.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Operation {
  const char* name;
  DAT_EXTENDED_OP code;
};
std::ostream& operator<<(std::ostream& out, const Operation& operation) {
  return out << operation.name;
}

#define ANYDAT_OPERATION(name) \
  Operation {                  \
#name, name                \
  }
constexpr Operation kNotSupported[] = {
    ANYDAT_OPERATION(DAT_IB_UD_SEND_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_CREATE_MEMBER_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_FREE_MEMBER_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_CREATE_GROUP_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_FREE_GROUP_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_SET_CLOCK_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_READ_CLOCK_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_SCATTER_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_SCATTERV_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_GATHER_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_GATHERV_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_ALLGATHER_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_ALLGATHERV_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_ALLTOALL_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_ALLTOALLV_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_REDUCE_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_ALLREDUCE_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_SCAN_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_BROADCAST_OP),
    ANYDAT_OPERATION(DAT_IB_COLLECTIVE_BARRIER_OP),
    ANYDAT_OPERATION(DAT_IB_UD_CM_FREE_OP),
    ANYDAT_OPERATION(DAT_IB_UD_AH_FREE_OP),
};
#undef ANYDAT_OPERATION

class UnsupportedOperation : public testing::TestWithParam<Operation> {};

// D2-RC-7: in the words of the interface, not of OpenFabrics. The sentence names what was asked for and, of datagrams,
// what there is instead.
TEST_P(UnsupportedOperation, IsRefusedByName) {
  const Operation asked = GetParam();
  const bool datagram = std::string(asked.name).starts_with("DAT_IB_UD_");
  for (const Wire& wire : all_wires()) {
    SCOPED_TRACE(wire.name);
    const Side side(wire);
    const Ep ep(side);
    for (const DAT_HANDLE handle : {DAT_HANDLE{ep.get()}, DAT_HANDLE{side.ia.get()}, DAT_HANDLE{side.recv.get()}}) {
      EXPECT_THAT(dat_extension_op(handle, asked.code), HasType(DAT_MODEL_NOT_SUPPORTED));
      const std::string sentence = anydat_last_error();
      EXPECT_THAT(sentence, AllOf(HasSubstr("dat_extension_op"), HasSubstr(std::string(asked.name) + " "),
                                  HasSubstr("not supported")));
      EXPECT_EQ(sentence.find("connections only") != std::string::npos, datagram) << sentence;
    }
  }
}

std::string operation_name(const testing::TestParamInfo<Operation>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Operations, UnsupportedOperation, testing::ValuesIn(kNotSupported), operation_name);

// What no header names is told by its number, as it was asked for.
TEST(UnsupportedOperations, WithoutANameAreRefusedByNumber) {
  const Side side(all_wires().front());
  const Ep ep(side);
  for (const auto& [code, number] : {std::pair{DAT_IB_UD_AH_FREE_OP + 1, "0x1e"}, {0x3fff, "0x3fff"}, {-1, "-0x1"}}) {
    EXPECT_THAT(dat_extension_op(ep.get(), static_cast<DAT_EXTENDED_OP>(code)), HasType(DAT_MODEL_NOT_SUPPORTED));
    EXPECT_THAT(anydat_last_error(), AllOf(HasSubstr("unknown operation"), HasSubstr(number)));
  }
}

// With DAT_LOG=warn each says it once, on standard error.
void play_unsupported_caller(RoleContext& context) {
  const CapturedErrors errors;
  const Side side(context.wire);
  const Ep ep(side);
  for (const Operation& operation : kNotSupported) {
    errors.take();
    (void)dat_extension_op(ep.get(), operation.code);
    const std::string printed = errors.take();
    context.parent.say(printed.substr(0, printed.find('\n')));
    context.parent.say(anydat_last_error());
  }
}
const Role kUnsupportedCaller("unsupported_caller", play_unsupported_caller);

TEST(UnsupportedOperations, AreToldOfInTheLog) {
  const std::map<std::string, std::string> variables{{"DAT_LOG", "warn"}};
  const ScopedEnv environment(variables);
  PeerProcess caller("unsupported_caller", all_wires().front());
  for (const Operation& operation : kNotSupported) {
    const std::string printed = caller.channel().hear();
    EXPECT_THAT(printed, HasSubstr(std::string(operation.name) + " "));
    EXPECT_THAT(printed, testing::EndsWith(caller.channel().hear()));
  }
  EXPECT_EQ(caller.wait_exit(), 0);
}

}  // namespace
}  // namespace anydat::test
