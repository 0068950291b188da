#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Breaks the library in one place at a time and tells whether the tests see it: whether the suite could fail at all.
#
#   scripts/mutate.sh                 all mutants of tests/mutants/*.txt
#   scripts/mutate.sh --only PATTERN  those whose ID or file matches the pattern (of the shell; a part of the name will do), or
#                                     one of several, each after an --only
#   scripts/mutate.sh --since COMMIT  those that have come after that commit
#   scripts/mutate.sh --sample N      N of them, chosen by --seed S (default: 1)
#   scripts/mutate.sh --light         those that nothing but libdat.so.1 has to be built for, and that are not equivalent
#   scripts/mutate.sh --survivors     what lives is shown to all conformance tests over shm and TCP and to the process tests
#   scripts/mutate.sh --list          says what there is and whether each place is found, and builds nothing
#   --jobs J      so many mutants are tested at once (default: 2); one is built at a time
#   --programs D  where the test programs are (default: build/release/bin/tests)
#   --times T     how often each mutant meets its tests (default: 3)
#   --folder D    where the copy of the sources is made (default: build/mutate)
#
# A record, with an empty line after it (a key may stand several times; its values are joined by a space):
#
#   id          pool-depth
#   file        src/nic/soft/receive_pool.cc
#   in          Status ReceivePool::post(
#   find        return Status::queue_full;
#   become      return Status::ok;
#   tests       conformance_tests *SrqPost*
#   equivalent  why no test can see it
#
# `find` has exactly one match in the file, or, where `in` is given, in what begins with that (only) match and ends at the
# next line that begins with a closing brace. White space is equal to any other. Without `become` it is taken out. Each
# line `tests` is a program and a filter of GoogleTest. One with `equivalent` is counted and not run.
#
# Each mutant meets the tests named three times. It is killed by a test that fails, crashes or does not end, and that
# passes on the library as it is. Test programs are not built again but for unit_tests, wire_tests and system_tests,
# which link objects of the library. All takes place in a copy of the sources. The last line counts; exit 1 if a mutant lives
# that is not said to be equivalent, or if the list is in error.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

root=$PWD
tree=$root/build/mutate
programs=$root/build/release/bin/tests
only=() since='' light='' sample='' seed=1 jobs=2 times=3 list='' survivors=''
while [ $# -gt 0 ]; do
  case $1 in
    --list) list=1 ;;
    --survivors) survivors=1 ;;
    --light) light=1 ;;
    --only | --since | --sample | --seed | --jobs | --programs | --folder | --times)
      [ $# -gt 1 ] || die "$1 needs a value"
      case $1 in
        --only) only+=("$2") ;;
        --since) since=$2 ;;
        --sample) sample=$2 ;;
        --seed) seed=$2 ;;
        --jobs) jobs=$2 ;;
        --times) times=$2 ;;
        --programs) programs=$(realpath "$2") ;;
        --folder) tree=$(realpath -m "$2") ;;
      esac
      shift
      ;;
    *)
      sed -n '3,35s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
  shift
done
built=$tree/build/release
work=$tree/build/mutants

# Seconds that the tests of one line may take; a test that hangs is killed.
limit=${ANYDAT_MUTATE_LIMIT:-90}
limit_of_all=1500

# ---- the list

declare -A file_of in_of find_of become_of tests_of equivalent_of
ids=()
errors=0

complain() {
  say "error: $*"
  errors=$((errors + 1))
}

take_record() {
  local id=${record[id]:-}
  [ ${#record[@]} -gt 0 ] || return 0
  if [ -z "$id" ] || [ -z "${record[file]:-}" ] || [ -z "${record[find]:-}" ] || [ -z "${record[tests]:-}" ]; then
    complain "$1: a record '$id' without id, file, find or tests"
  elif [ -n "${file_of[$id]:-}" ]; then
    complain "$1: $id stands twice"
  else
    ids+=("$id")
    file_of[$id]=${record[file]} in_of[$id]=${record[in]:-} find_of[$id]=${record[find]} become_of[$id]=${record[become]:-}
    tests_of[$id]=${record[tests]} equivalent_of[$id]=${record[equivalent]:-}
  fi
  record=()
}

read_list() {
  local name line key value
  declare -A record
  for name in tests/mutants/*.txt; do
    record=()
    while IFS= read -r line || [ -n "$line" ]; do
      case $line in
        '#'*) continue ;;
        '') take_record "$name" && continue ;;
      esac
      read -r key value <<<"$line"
      case $key in
        id | file | in | find | become | equivalent) record[$key]=${record[$key]:+${record[$key]} }$value ;;
        tests) record[tests]=${record[tests]:+${record[tests]}$'\n'}$value ;;
        *) complain "$name: no such key: $key" ;;
      esac
    done <"$name"
    take_record "$name"
  done
}

# mutate ID FROM: FROM with the mutant applied, on standard output. Fails if there is not one place.
mutate() {
  IN=${in_of[$1]} FIND=${find_of[$1]} BECOME=${become_of[$1]} perl -0777 -e '
    sub pattern { join "\\s+", map { quotemeta } split " ", $_[0] }
    my $text = <STDIN>;
    my ($from, $to) = (0, length $text);
    if ($ENV{IN} ne "") {
      my $in = pattern($ENV{IN});
      my @places;
      while ($text =~ /$in/g) { push @places, $-[0] }
      die sprintf("%d matches of `in`\n", scalar @places) if @places != 1;
      $from = $places[0];
      pos($text) = $from;
      $to = $+[0] if $text =~ /^\}/mg;
    }
    my $part = substr($text, $from, $to - $from);
    my $find = pattern($ENV{FIND});
    my $count = () = $part =~ /$find/g;
    die "$count matches of `find`\n" if $count != 1;
    $part =~ s/$find/$ENV{BECOME}/;
    print substr($text, 0, $from), $part, substr($text, $to);
  ' <"$2"
}

matches() {
  local pattern
  [ -z "$since" ] || grep -qxF -e "$1" <<<"$new" || return 1
  if [ -n "$light" ] && { [ -n "${equivalent_of[$1]}" ] || [ "$(named_targets "$1")" != dat ]; }; then return 1; fi
  [ ${#only[@]} -gt 0 ] || return 0
  for pattern in "${only[@]}"; do
    if [[ $1 == *$pattern* ]] || [[ ${file_of[$1]} == *$pattern* ]]; then return 0; fi
  done
  return 1
}

choose() {
  local id new=''
  [ -z "$since" ] || new=$(git diff "$since" -- tests/mutants | sed -n 's/^+id *//p')
  chosen=()
  for id in "${ids[@]}"; do
    if matches "$id"; then chosen+=("$id"); fi
  done
  if [ -n "$sample" ]; then
    mapfile -t chosen < <(printf '%s\n' "${chosen[@]}" |
      awk -v seed="$seed" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' | sort -n | head -n "$sample" | cut -f 2)
  fi
  # Those of one file in a row: it is put back to what it was once.
  mapfile -t chosen < <(for id in "${chosen[@]}"; do printf '%s\t%s\n' "${file_of[$id]}" "$id"; done | sort -s -k 1,1 | cut -f 2)
}

check_places() {
  local id why
  for id in "${ids[@]}"; do
    [ -f "${file_of[$id]}" ] || { complain "$id: no file ${file_of[$id]}" && continue; }
    why=$(mutate "$id" "${file_of[$id]}" 2>&1 >/dev/null) || complain "$id: ${file_of[$id]}: $why"
  done
}

# ---- the build

# What has changed is new to ninja, what has not is not.
copy_tree() {
  mkdir -p "$tree"
  git ls-files -z -co --exclude-standard | TREE=$tree perl -0 -MFile::Path=make_path -e '
    sub content { open(my $in, "<:raw", $_[0]) or return undef; local $/; <$in> }
    my (%there, %made);
    while (my $name = <STDIN>) {
      chomp $name;
      my $text = content($name);
      next if !defined $text || -l $name;
      my $to = "$ENV{TREE}/$name";
      $there{$to} = 1;
      my $old = content($to);
      next if defined $old && $old eq $text;
      my $folder = $to =~ s{/[^/]*$}{}r;
      make_path($folder) unless $made{$folder}++;
      open(my $out, ">:raw", $to) or die "$to: $!\n";
      print $out $text;
      chmod((stat $name)[2] & 07777, $to);
    }
    open(my $find, "-|", "find", $ENV{TREE}, "-path", "$ENV{TREE}/build", "-prune", "-o", "-type", "f", "-print0");
    while (my $name = <$find>) { chomp $name; unlink $name unless $there{$name} }
  '
}

# A mutant may leave a name unused, and is compiled once. What has been compiled without it is kept meanwhile, and put back
# when the source is: a header may be in fifty objects.
write_compiler() {
  rm -rf "$work/kept"
  cat >"$work/compile" <<SCRIPT
#!/bin/bash
kept=$work/kept
SCRIPT
  cat >>"$work/compile" <<'SCRIPT'
object='' depends=''
for ((i = 1; i < $#; ++i)); do
  next=$((i + 1))
  case ${!i} in
    -o) object=${!next} ;;
    -MF) depends=${!next} ;;
  esac
done
name=${object//\//,}
compiler=("$@")
! command -v ccache >/dev/null || compiler=(ccache "$@")
if [ -z "$object" ] || [ -z "$depends" ]; then exec "${compiler[@]}"; fi
case $ANYDAT_MUTANT in
  '') exec "${compiler[@]}" ;;
  back)
    [ -e "$kept/$name" ] && [ -e "$kept/$name.d" ] || exec "${compiler[@]}"
    cp "$kept/$name" "$object" && cp "$kept/$name.d" "$depends"
    ;;
  *)
    mkdir -p "$kept"
    [ -e "$kept/$name" ] || cp "$object" "$kept/$name" || exit
    "${compiler[@]}" -w -O1 && cp "$depends" "$kept/$name.d"
    ;;
esac
SCRIPT
  chmod +x "$work/compile"
}

build() { ninja -j 2 -C "$built" "$@" >"$work/build.log" 2>&1; }

prepare() {
  mkdir -p "$work"
  copy_tree
  if [ -n "$(find "$tree" -path "$tree/build" -prune -o -newer "$work/passed" -type f -print -quit 2>/dev/null)" ]; then
    rm -f "$work/passed"
  fi
  write_compiler
  (cd "$tree" && cmake --preset release -DCCACHE="$work/compile" -DANYDAT_TESTS_APART=OFF -DANYDAT_BENCH=OFF >"$work/configure.log" 2>&1) ||
    die "see $work/configure.log"
  mapfile -t targets < <(for id in "${chosen[@]}"; do named_targets "$id"; done | sort -u)
  build "${targets[@]}" || die "see $work/build.log"
}

# What has to be built for a mutant.
named_targets() {
  local program filter
  echo dat
  while read -r program filter; do
    case $program in
      unit_tests | wire_tests | system_tests) echo "$program" ;;
      face20_tests | conformance2_tests) echo dat2 ;;
    esac
  done <<<"${tests_of[$1]}" | sort -u
}

# gather FOLDER TARGET...: what is to be tested, where the next build does not change it.
gather() {
  local folder=$1 target
  rm -rf "$folder" && mkdir -p "$folder"
  shift
  for target in "$@"; do
    case $target in
      dat) cp "$built/src/libdat.so.1" "$folder/" ;;
      dat2) cp "$built/src/libdat2.so.2" "$folder/" ;;
      *) cp "$built/bin/tests/$target" "$folder/" ;;
    esac
  done
}

# ---- the tests

# run_test FOLDER PROGRAM FILTER SECONDS
run_test() {
  local program=$programs/$2
  [ ! -x "$1/$2" ] || program=$1/$2
  LD_LIBRARY_PATH=$1 timeout --kill-after=3 "$4" "$program" --gtest_brief=1 --gtest_fail_fast "--gtest_filter=$3" \
    >"$1/log" 2>&1 </dev/null
}

# passes_unbroken FOLDER PROGRAM FILTER SECONDS: whether what has just failed in FOLDER passes on the library as it is, which
# is looked at once.
passes_unbroken() {
  local folder=$1 program=$2 filter=$3 seconds=$4 failed
  # Where no name is told, the program has crashed or hung, in any of them.
  failed=$(sed -n 's/^\[  FAILED  \] \([^ ,]*\).*/\1/p' "$folder/log" | sort -u | paste -sd: -)
  [ -z "$failed" ] || filter=$failed
  grep -qxF "$seconds $program $filter" "$work/passed" 2>/dev/null && return 0
  mkdir -p "$folder/unbroken"
  ln -sf "$work/unbroken"/* "$folder/unbroken/"
  for _ in 1 2 3; do
    if run_test "$folder/unbroken" "$program" "$filter" "$seconds"; then
      printf '%s %s %s\n' "$seconds" "$program" "$filter" >>"$work/passed"
      return 0
    fi
  done
  return 1
}

# 0: all pass. 1: one fails that passes on the library as it is. 2: one fails that fails there, too. 3: there is none.
run_tests() {
  local program filter code
  while read -r program filter; do
    code=0
    run_test "$1" "$program" "$filter" "$limit" || code=$?
    case $code in
      0) ;;
      # What has not ended in that time does without the mutant, or else the machine is too busy to tell.
      124 | 137) if passes_unbroken "$1" "$program" "$filter" "$limit"; then return 1; else return 2; fi ;;
      *) if passes_unbroken "$1" "$program" "$filter" $limit_of_all; then return 1; else return 2; fi ;;
    esac
    if grep -q -e '] 0 tests from' "$1/log"; then return 3; fi
  done <<<"${tests_of[$2]}"
  return 0
}

# meet ID: the verdict of its tests, a line of the results.
meet() {
  local folder=$work/id/$1 kills=0 code verdict=''
  for ((run = 0; run < times; ++run)); do
    code=0
    run_tests "$folder" "$1" || code=$?
    case $code in
      1) kills=$((kills + 1)) ;;
      2) verdict=unproven ;;
      3) verdict=untested ;;
    esac
  done
  if [ -z "$verdict" ]; then
    case $kills in
      "$times") verdict=killed ;;
      0) verdict=lived ;;
      *) verdict=sometimes ;;
    esac
  fi
  if [ $verdict = lived ] && [ -n "$survivors" ]; then
    if ! run_test "$folder" conformance_tests '*/shm:*/tcp' $limit_of_all; then
      verdict=elsewhere
    elif ! run_test "$folder" process_tests '*' $limit_of_all; then
      verdict=elsewhere
    fi
  fi
  printf '%s\t%s\t%s\n' "$verdict" "$1" "${file_of[$1]}" >>"$results"
  printf '%-10s%s\n' "$verdict" "$1"
  if [ $verdict = elsewhere ]; then grep -m 3 -a 'FAILED' "$folder/log" || true; fi
  rm -rf "$folder"
}

restore() {
  [ -z "$broken" ] || cp "$work/unbroken_source" "$tree/$broken"
  broken=
}

run_all() {
  local id file wanted running=0
  for id in "${chosen[@]}"; do
    file=${file_of[$id]}
    if [ -n "${equivalent_of[$id]}" ]; then
      printf 'equivalent\t%s\t%s\n' "$id" "$file" >>"$results"
      continue
    fi
    if [ -n "$broken" ] && [ "$broken" != "$file" ]; then
      restore
      ANYDAT_MUTANT=back build "${targets[@]}" || die "see $work/build.log"
    fi
    [ -n "$broken" ] || cp "$tree/$file" "$work/unbroken_source"
    broken=$file
    mutate "$id" "$work/unbroken_source" >"$tree/$file"
    mapfile -t wanted < <(named_targets "$id")
    if ! ANYDAT_MUTANT=1 build "${wanted[@]}"; then
      complain "$id does not compile: $(grep -m 1 -a 'error' "$work/build.log")"
      continue
    fi
    gather "$work/id/$id" "${wanted[@]}"
    [ $running -lt "$jobs" ] || { wait -n || true; running=$((running - 1)); }
    meet "$id" &
    running=$((running + 1))
  done
  wait
}

count() { grep -c "^$1"$'\t' "$results" || true; }

read_list
choose
if [ -n "$list" ]; then
  for id in "${chosen[@]}"; do
    printf '%s\t%s\t%s\n' "$id" "${file_of[$id]}" "${equivalent_of[$id]:+equivalent}"
  done
  check_places
  say "mutants: ${#chosen[@]} of ${#ids[@]} errors: $errors"
  [ $errors = 0 ]
  exit
fi
check_places
[ $errors = 0 ] || die "the list is in error"
[ ${#chosen[@]} -gt 0 ] || die "no such mutant"
broken=''
trap restore EXIT
ulimit -c 0
prepare
results=$work/results
: >"$results"
gather "$work/unbroken" "${targets[@]}"
run_all
say "mutants: ${#chosen[@]} killed: $(count killed) sometimes: $(count sometimes) elsewhere: $(count elsewhere)" \
  "lived: $(count lived) equivalent: $(count equivalent)" \
  "errors: $((errors + $(count unproven) + $(count untested)))"
[ "$errors" = 0 ] && ! grep -qE '^(lived|unproven|untested)' "$results"
