#!/bin/bash
# faults.sh BUILD MOST: lets each allocation and each I/O call of consan fail once, in seven uses of it; at
# most MOST calls of each use, evenly spread (0: all). A use with a failed call must end by itself, by no
# signal, and either as without the fault or with a message and status 64, 67, 70 or, from consan-run
# alone, 126; never with the status of a clean run.
#
# Prints one line for each use. Status 1: one did not end so.
build=$1 most=$2 bad=0 runs=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/consan-faults-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
fault=$(realpath "$build/tests/faults/fault.so")
ring=$build/kernels/ring/ring
run=$build/consan-run consan=$build/consan
buggy="--rows=64 --bug=no_syncwarp"

# what every use writes: $out is a fresh folder
use_replay() { "$consan" replay --report="$out/r.json" "$tmp/saved" --bank-conflicts; }
use_report() { "$consan" report --to=html "$tmp/ring.json" >"$out/r.html"; }
use_merge() { "$consan" merge --report="$out/r.json" "$tmp/ring.json" "$tmp/ring.json" >/dev/null; }
use_recover() { cp -r "$tmp/orphans" "$out/orphans"; "$consan" recover --report="$out/r.json" "$out/orphans"; }
use_suppress() { "$consan" suppress --rule="$rule" --reason=x "$tmp/ring.json" >"$out/s.txt"; }
use_dump() { "$consan" dump "$tmp/saved" >"$out/dump.txt"; }
use_run() { "$run" --jobs=2 --report="$out/r.json" --save="$out/saved" "$ring" $buggy >/dev/null; }

try() { # USE: sets rc and err
	out=$tmp/out
	rm -rf "$out"; mkdir "$out"
	err=$tmp/err
	LD_PRELOAD=$fault FAULT_OBJECT=consan timeout -k 1 300 bash -c "$(declare -f use_$1); use_$1" 2>"$err"
	rc=$?
}

# Of a run that ends as ever, the report is whole.
whole() { # USE
	case $1 in
	replay|run|recover) grep -qs '"rule"' "$out/r.json" && grep -q "SUMMARY consan" "$err";;
	merge) grep -qs '"rule"' "$out/r.json";;
	report) grep -q '</html>' "$out/r.html";;
	suppress) grep -q reason: "$out/s.txt";;
	dump) grep -q CTA_BEGIN "$out/dump.txt";;
	esac
}

wrong() {
	bad=1
	echo "faults: $1: call $n of $calls ($(tr '\n' ' ' <"$tmp/log")): status $rc, $2"
	head -n 5 "$err"
}

export build ring run consan buggy tmp out
"$run" --quiet --log-file=/dev/null --save="$tmp/saved" --report="$tmp/ring.json" "$ring" $buggy >/dev/null
# records whose consan-run was killed
(TMPDIR=$tmp "$run" --quiet --log-file=/dev/null sh -c "$ring $buggy >/dev/null; kill -9 \$PPID"; true) 2>/dev/null
mv "$tmp"/consan-* "$tmp/orphans"
rule=$(grep -o "\"rule\": *\"CS[0-9]*" "$tmp/ring.json" | head -n 1 | grep -o "CS[0-9]*")
export rule
for use in ${FAULT_USES:-replay report merge recover suppress dump run}; do
	rm -f "$tmp/calls"
	export FAULT_CALLS=$tmp/calls out=$tmp/out
	unset FAULT_AT FAULT_LOG
	try $use
	want=$rc
	calls=$(sort -n "$tmp/calls" | tail -n 1)
	whole $use || { echo "faults: $use: does not work without a fault"; cat "$err"; exit 1; }
	unset FAULT_CALLS
	step=1 count=0
	[ "$most" -gt 0 ] && [ "$calls" -gt "$most" ] && step=$(((calls + most - 1) / most))
	export FAULT_LOG=$tmp/log
	for ((n = 1; n <= calls; n += step)); do
		: >"$tmp/log"
		export FAULT_AT=$n
		try $use
		[ -s "$tmp/log" ] && count=$((count + 1))
		case $rc in
		"$want") whole $use || grep -q "not written" "$err" || wrong $use "the report is not whole";;
		64|67|70|126) [ -s "$err" ] || wrong $use "no message";;
		1|2) grep -q consan "$err" || wrong $use "no message";;
		124|137) wrong $use "it does not end";;
		*) wrong $use "expected $want, 67 or 70";;
		esac
	done
	echo "faults: $use: $calls calls, $count of them failed, each in one run"
done
exit $bad
