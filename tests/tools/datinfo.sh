#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
. "$(dirname "$0")/lib.sh"

run 0 datinfo
says '^soft +1\.2 +[0-9a-f.:]+ +yes +anydat'
says '^soft-lo +1\.2 +127\.0\.0\.1 '

run 0 datinfo --ia soft-lo
says '^soft-lo$'
says '^  srq_supported +yes$'
says '^  max_recv_per_srq +[1-9][0-9]*$'
says '^  completion_flags_supported +suppress, solicited_wait, unsignalled, barrier_fence, evd_threshold$'

run 0 datinfo --ia soft-lo --ia soft --json
[ "$(json adapters 0 name)" = soft-lo ] || die "the adapters are not in the order asked for"
[ "$(json adapters 1 name)" = soft ] || die "the second adapter is missing"
[ "$(json adapters 0 provider provider_name)" = anydat ] || die "another Provider than anydat"

# Asked for by name, what does not open is a failure that says why.
run 1 datinfo --ia no-such-adapter
complains "no-such-adapter.*DAT_PROVIDER_NOT_FOUND"
run 2 datinfo --no-such-option
run 2 datinfo --env --all

DAT_SPIN_US=7 DAT_NO_SUCH=1 run 0 datinfo --env
says '^DAT_SPIN_US$'
says '^  value +7$'
says '^DAT_NO_SUCH$'
DAT_SPIN_US=7 DAT_NO_SUCH=1 run 0 datinfo --env --json
[ "$(json unknown 0)" = DAT_NO_SUCH ] || die "the unknown variable is not in the JSON"
json variables 0 default >/dev/null

# What programs of each version may take for granted while no variable says it: datinfo has the library of uDAPL 1.2.
(unset DAT_COMPAT && run 0 datinfo --env)
grep -A 4 '^DAT_COMPAT$' "$work/out" >"$work/compat" || die "DAT_COMPAT is not shown"
grep -qE '^  values +strict, default, openfabrics$' "$work/compat" || die "the settings are not shown"
grep -qE '^  default +default$' "$work/compat" || die "libdat.so.1 does not go by default"
grep -qE '^  meaning .*OpenFabrics does as well, by which libdat2\.so\.2 goes while this is unset$' "$work/compat" ||
  die "what libdat2.so.2 goes by is not said"

# A registry of one's own is listed as it is.
printf 'mine u1.2 nonthreadsafe default libdat.so.1 anydat.1.0 soft-lo ""\n' >"$work/dat.conf"
DAT_OVERRIDE=$work/dat.conf run 0 datinfo
says '^mine '
say "datinfo is in order"
