#!/bin/sh
# fuzz.sh FOLDER SECONDS TARGET: runs the libFuzzer target FOLDER/TARGET for SECONDS, from
# FOLDER/seeds/TARGET/. New inputs go to FOLDER/corpus/TARGET/, failures to FOLDER/found/. Prints one line.
# Status 1: something was found.
folder=$1 seconds=$2 t=$3
log=$folder/$t.log
mkdir -p "$folder/found" "$folder/corpus/$t"
UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "$folder/$t" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -max_len=100000 \
	-artifact_prefix="$folder/found/$t-" "$folder/corpus/$t" "$folder/seeds/$t" >"$log" 2>&1
status=$?
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
cover=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)
echo "fuzz $t: ${runs:-0} executions in $seconds s, ${cover:-cov: 0} edges"
[ "$status" = 0 ] && exit 0
grep -E 'ERROR|SUMMARY|runtime error|Test unit written|^ *#[0-9]+ ' "$log" | head -n 30
exit 1
