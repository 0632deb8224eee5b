# Writes both twins of each specimen of tests/cases/ to files of their own below `dir`, for ptxas:
# line numbers stay the same, entries get the file's name. A twin whose bug ptxas itself reports is
# left out, and so is PTX that is newer than ptxas: release 13.0 of CUDA has PTX 9.0.
function is_tagged(line, word,    c) {
	c = index(line, "//")
	if (!c || line ~ /^[ \t]*\/\//) return 0
	return index(" " substr(line, c + 2) " ", " " word " ") > 0
}
function flush_file(    k, i, path, line) {
	split(release, of, ".")
	if (n && version > of[1] - 4 + of[2] / 10) {
		print "specimens: " base " is not assembled: PTX " version " is newer than ptxas " release
		n = 0
	}
	for (k = tagged ? 0 : 1; n && k < 2; k++) {
		if (base ~ /(cs408_dec_asks_for_more|cs626_two_group_sizes)$/ && !k) continue
		path = dir "/" base "." (k ? "fixed" : "racy") ".ptx"
		for (i = 1; i <= n; i++) {
			line = is_tagged(at[i], k ? "racy" : "fixed") ? "" : at[i]
			if (line ~ /^(\.visible )?\.entry /)
				sub(/\.entry +[A-Za-z0-9_$]+/, ".entry " base "_" k, line)
			print line >path
		}
		close(path)
		twins++
	}
	n = tagged = version = 0
}
FNR == 1 {
	flush_file()
	base = FILENAME; sub(/^tests\/cases\//, "", base); sub(/\.ptx$/, "", base); sub(/\//, "_", base)
}
/^\.version / { version = $2 + 0 }
{ at[++n] = $0; if (is_tagged($0, "racy") || is_tagged($0, "fixed")) tagged = 1 }
END { flush_file(); print "specimens: " twins " twins for ptxas" }
