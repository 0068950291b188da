# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Guest side of process-test.sh, after guest-lib.sh. Argument: which tests of process_tests.
export ANYDAT_TEST_TIMEOUT_SCALE=3
export brief=1  # there are many, and what failed is to be found
for adapter in verbs-rxe0 verbs-siw1; do
  mapfile -t tests < <(ANYDAT_TEST_ADAPTERS=$adapter process_tests "--gtest_filter=$1" --gtest_list_tests |
    awk '/^[^ ].*\.( |$)/ {suite = $1; next} /^  / {print suite $1}' | grep "${adapter//-/_}")
  check "there are tests over $adapter" [ ${#tests[@]} -gt 0 ]
  for test in "${tests[@]}"; do
    check "$test" env "ANYDAT_TEST_ADAPTERS=$adapter" timeout -k 5 60 process_tests --gtest_brief=1 "--gtest_filter=$test"
  done
done
summary
