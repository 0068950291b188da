#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Measures the ABI of uDAPL 2.0 as a set of headers has it, and prints it as a table: what a compiler and a debugger say
# of the names, and no text of the headers. The tests compare include/dat2 with the table and need neither.
#
#   scripts/measure-abi.sh INCLUDE LIBDAT2 > tests/data/abi2-x86_64.tsv
#   scripts/gen-abi-facts.sh
#
# INCLUDE is the folder that holds dat2/, LIBDAT2 the shared library whose exports are looked up; both are those of a
# libdapl-dev and a libdapl2, unpacked anywhere. Wants gcc, gdb with Python, nm.
set -euo pipefail
include=$(cd "${1:?INCLUDE}" && pwd)
library=$(realpath "${2:?LIBDAT2}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >headers.h <<'END'
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
END
compile=(gcc -std=gnu11 -w -I"$include" -include headers.h -x c)

# Every macro with the header that defines it, and its text in one line.
"${compile[@]}" -E -dD /dev/null | awk -v OFS='\t' '
  /^# [0-9]+ "/ { split($0, parts, "\""); file = parts[2]; next }
  /^#define / && file ~ /\/dat2\// {
    sub(/^#define /, "")
    match($0, /^[A-Za-z0-9_]+(\([^)]*\))?/)
    name = substr($0, 1, RLENGTH)
    body = substr($0, RLENGTH + 1)
    gsub(/[[:space:]]+/, " ", body); gsub(/^ | $/, "", body)
    header = file; sub(/.*\//, "", header)
    print header, name, body
  }' >macros

# What an object-like macro is, by what it may be used for.
can() { "${compile[@]}" -fsyntax-only - <<<"$1" 2>/dev/null; }
: >values.h
while IFS=$'\t' read -r header name body; do
  case "$name" in _* | UINT64_C* | *'('*) continue ;; esac
  [ -n "$body" ] || continue
  if can "_Static_assert(__builtin_types_compatible_p(__typeof__($name), void*), \"\");"; then
    kind=pointer
    echo "void* const value_$name = ($name);" >>values.h
  elif can "int x[($name) % 2 ? 2 : 1]; _Static_assert(sizeof($name) <= 8, \"\");"; then
    kind=number
    echo "const __typeof__($name) value_$name = ($name);" >>values.h
  elif can "char x[] = $name;"; then
    kind=string
    echo "const char value_${name}[] = $name;" >>values.h
  else
    kind="alias"
  fi
  printf '%s\t%s\t%s\t%s\n' "$kind" "$header" "$name" "$body"
done <macros >kinds

# The calls, with the header that declares each.
"${compile[@]}" -c -o /dev/null -aux-info declarations - </dev/null
sed -nE 's|^/\* .*/dat2/([a-z_]+\.h):.*[ *]\(?((dat)_[a-z_0-9]+) \(.*|\1\t\2|p' declarations | sort -u -k2 | grep -vP '\tdat_strerror_ext' >calls
while IFS=$'\t' read -r _ name; do echo "__typeof__($name)* call_$name;"; done <calls >calls.h
nm -D --defined-only "$library" | awk '$2 == "T" { sub(/@@/, "\t", $3); print $3 }' >exports

"${compile[@]}" -include values.h -include calls.h -g -fno-eliminate-unused-debug-types -c -o probe.o - <<<'int probe;'

cat >print.py <<'END'
import gdb, re

def lines(name):
  return [line.rstrip('\n').split('\t') for line in open(name)]

def number(value):
  return str(value) if value < 0 else hex(value)

def text(function):
  words = str(function).replace('struct __va_list_tag *', 'va_list')
  return re.sub(r' +([*,)])', r' \1', words)

names = sorted(set(re.findall(r'\b(DAT_\w+);', gdb.execute('info types -q ^DAT_', to_string=True))))
types = {name: gdb.lookup_type(name).strip_typedefs() for name in names}
rows = {kind: [] for kind in ('const', 'type', 'struct', 'field', 'slot', 'proto', 'func', 'alias')}
def row(*columns):
  rows[columns[0]].append('\t'.join(str(column) for column in columns))

def fields(struct, of, prefix, base):
  for field in of.fields():
    inner = field.type.strip_typedefs()
    offset = base + field.bitpos // 8
    aggregate = inner.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)
    if not field.name:
      fields(struct, inner, prefix, offset)
      continue
    row('field', struct, prefix + field.name, offset, field.type.sizeof)
    if aggregate and not inner.tag: fields(struct, inner, prefix + field.name + '.', offset)

for name in names:
  kind = types[name]
  if kind.code == gdb.TYPE_CODE_ENUM:
    row('type', name, kind.sizeof, 'signed' if any(f.enumval < 0 for f in kind.fields()) else 'unsigned', 'enum', kind.tag)
    for f in kind.fields(): row('const', f.name, number(f.enumval), kind.sizeof * 8, 'enum ' + name)
  elif kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
    word = 'struct ' if kind.code == gdb.TYPE_CODE_STRUCT else 'union '
    # A name for a structure that has a name already (DAT_DTO_COOKIE) is told as a type.
    if gdb.lookup_type(name).target().code == gdb.TYPE_CODE_TYPEDEF: row('type', name, kind.sizeof, 'aggregate')
    elif name in ('DAT_SOCK_ADDR', 'DAT_SOCK_ADDR6'): row('struct', name, kind.sizeof, kind.alignof, word + kind.tag)
    else:
      row('struct', name, kind.sizeof, kind.alignof, word + kind.tag)
      if name != 'DAT_PROVIDER': fields(name, kind, '', 0)
  elif kind.code == gdb.TYPE_CODE_PTR:
    target = kind.target().strip_typedefs()
    if target.code == gdb.TYPE_CODE_FUNC:
      row('type', name, kind.sizeof, 'pointer', 'function')
      row('proto', name, text(gdb.lookup_type(name).strip_typedefs().target()))
    elif target.code == gdb.TYPE_CODE_ARRAY:
      row('type', name, kind.sizeof, 'pointer', 'pointer to char[%d]' % target.sizeof)
    else: row('type', name, kind.sizeof, 'pointer')
  else:
    row('type', name, kind.sizeof, 'signed' if kind.is_signed else 'unsigned')

index = 0
for field in types['DAT_PROVIDER'].fields():
  if str(field.type).endswith('_FUNC'):
    row('slot', index, field.name, field.bitpos // 8, str(field.type))
    index += 1
  else: row('field', 'DAT_PROVIDER', field.name, field.bitpos // 8, field.type.sizeof)

known = set(names) | {name for _, name, _ in lines('macros')}
for kind, header, name, body in lines('kinds'):
  if kind == 'alias':
    if not re.fullmatch(r'\w+', body): body = 'an expression'
    elif body.startswith('DAT_') and body not in known: body += ' (which nothing defines)'
    row('alias', name, body, header)
    continue
  value = gdb.parse_and_eval('value_' + name)
  if kind == 'string': row('const', name, '"%s"' % value.string(), 'string', header)
  elif kind == 'pointer': row('const', name, number(int(value)), 'ptr', header)
  else: row('const', name, number(int(value)), value.type.sizeof * 8, header)

exports = dict(lines('exports'))
declared = {name: header for header, name in lines('calls')}
for name in sorted(set(exports) | set(declared)):
  if name in exports: row('func', name, 'symbol', exports[name], declared.get(name, '-'))
  else: row('func', name, 'declared', '-', declared[name])
  if name in declared: row('proto', name, text(gdb.parse_and_eval('call_' + name).type.target()))
for header, name, body in lines('macros'):
  if '(' not in name or name.startswith(('_', 'UINT64_C')): continue
  macro, arguments = name.rstrip(')').split('(')
  count = len(arguments.split(','))
  slot = re.search(r'DAT_HANDLE_TO_PROVIDER ?\(\w+\) ?-> ?(\w+)', body)
  operation = re.search(r'^dat_extension_op\(.*?\b(?!DAT_IB_OP\b)(DAT_\w+_OP)\b', body)
  if slot: row('func', macro, 'redirect', slot.group(1), count)
  elif operation: row('func', macro, 'extension', operation.group(1), count)
  else: row('func', macro, 'macro', count)

for kind, found in rows.items():
  print('#\n# ---- %s (%d)' % (kind, len(found)))
  print('\n'.join(found))
END

cat <<'END'
# ABI facts of uDAPL 2.0 on x86-64 Linux (gcc, LP64, little endian).
# Written by scripts/measure-abi.sh from the headers and the library of
# OpenFabrics dapl 2.1.10; no text of those headers is reproduced here. The
# columns are those of abi-x86_64.tsv, where more is said of them. What differs:
#
# const  a macro for a name that is itself a constant is told as a constant.
# field  PROXY.MEMBER is a member of a union without a name of its own; members
#        of a union without any name are told as the structure's.
# slot   INDEX NAME OFFSET TYPE
# proto  NAME TYPE                  the type of a call, or what a pointer type leads
#                                   to, in the names of the headers.
# func   NAME declared - HEADER     a call that is declared and that no library exports.
# func   NAME redirect SLOT COUNT   a macro of COUNT arguments that calls SLOT.
# func   NAME extension OP COUNT    a macro of COUNT arguments for dat_extension_op().
# func   NAME macro COUNT           any other function-like macro.
# alias  NAME MEANING HEADER        a macro that is no constant.
#
# Shared object: soname libdat2.so.2, all symbols under version node DAT_2.0.
END
gdb -batch -nx -q -x print.py probe.o
