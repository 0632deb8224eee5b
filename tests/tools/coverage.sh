#!/bin/bash
# coverage.sh BUILD: lines and branches that the tests of a build with --coverage reached, by module, and
# in BUILD/coverage.txt by file, those with the most lines that no test reaches first.
build=$1
cd "$(dirname "$0")/../.." || exit 1
find "$build"/{libconsan,shadow,reports,instrument} -name '*.gcno' ! -name '*.avx2.gcno' ! -name '*.avx512.gcno' \
	| while read -r notes; do
	[ -e "${notes%.gcno}.gcda" ] || { echo "none ${notes#"$build"/}"; continue; }
	gcov -b -n -o "$notes" "$notes" 2>/dev/null
done | awk '
	function flush() { file = "" }
	/^File / { file = $2; gsub(/\x27/, "", file); if (file !~ /^(libconsan|shadow|reports|instrument)\/.*\.c$/) file = "" }
	/^Lines executed:/ && file { split($2, p, ":"); sub(/%/, "", p[2]); n = $NF; lines[file] = n; hit[file] = p[2] * n / 100 }
	/^Taken at least once:/ && file { split($4, p, ":"); sub(/%/, "", p[2]); n = $NF; branches[file] = n; taken[file] = p[2] * n / 100 }
	/^none / { f = $2; sub(/gcno$/, "c", f); none[f] }
	END {
		for (f in lines) {
			m = f; sub(/\/[^\/]*$/, "", m)
			L[m] += lines[f]; H[m] += hit[f]; B[m] += branches[f]; T[m] += taken[f]
			printf "%5d of %5d lines, %5d of %5d branches missed  %s\n", lines[f] - hit[f], lines[f], branches[f] - taken[f], branches[f], f > "/dev/stderr"
		}
		for (f in none) printf "  all lines missed  %s\n", f > "/dev/stderr"
		printf "%-28s %8s %7s %9s %7s\n", "module", "lines", "%", "branches", "%"
		for (m in L) {
			printf "%-28s %8d %6.1f%% %9d %6.1f%%\n", m, L[m], 100 * H[m] / L[m], B[m], B[m] ? 100 * T[m] / B[m] : 100 | "sort"
			a += L[m]; h += H[m]; b += B[m]; t += T[m]
		}
		close("sort")
		printf "%-28s %8d %6.1f%% %9d %6.1f%%\n", "all", a, 100 * h / a, b, 100 * t / b
	}' 2>"$build/coverage.err"
sort -rn "$build/coverage.err" >"$build/coverage.txt"
rm -f "$build/coverage.err"
echo "by file: $build/coverage.txt"
