# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side of face20-test.sh, after guest-lib.sh. Arguments: which suites of face20_tests, and which tests are kept out.
export ANYDAT_TEST_TIMEOUT_SCALE=6
for adapter in verbs-rxe0 verbs-siw1; do
  export ANYDAT_TEST_ADAPTERS=$adapter
  wire=${adapter//-/_}
  check "uDAPL 2.0 over $adapter" timeout -k 5 120 face20_tests --gtest_brief=1 "--gtest_filter=$1/$wire:-$2"
  grep -E '^\[.* tests? .*ran\.' /tmp/out
  # By themselves: a program of each version, each as the one that listens.
  check "both versions over $adapter" timeout -k 5 60 face20_tests '--gtest_filter=*BetweenVersions.AProgramOf*Calls*'
  check "each was called by the other" [ "$(grep -cE "^\[       OK \] .*BetweenVersions.*/$wire" /tmp/out)" = 2 ]
done
summary
