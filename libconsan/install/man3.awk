# Converts consan.h to a manual page: comments become text, declarations become examples.
function text(s) {
	sub(/^ ?\*\/?/, "", s); gsub(/\\/, "\\e", s); if (!sample) sub(/^ +/, "", s)
	return s ~ /^[.']/ ? "\\&" s : s
}
function mode(to) {
	if (to == now) return
	if (now == "code") print ".fi\n.RE"
	if (to == "code") print ".PP\n.RS 4\n.nf"
	if (to == "text" && now != "start") print ".PP"
	now = to
}
BEGIN {
	now = "start"
	print ".TH CONSAN 3 \"\" \"consan " version "\" \"Library Functions\""
	print ".SH NAME\nconsan \\- the concurrency sanitizer for CUDA kernels as a library"
	print ".SH SYNOPSIS\n.nf\n#include <consan/consan.h>\n\ncc ... $(pkg-config \\-\\-cflags \\-\\-libs consan)\n.fi"
	print ".SH DESCRIPTION"
}
/^#|^extern "C"|^$/ && !inside { next }
/^}$/ && !struct { next }
/^\/\* ----/ {
	title = $0; sub(/^\/\* -+ /, "", title); sub(/ -+ \*\/$/, "", title)
	mode("start"); print ".SH " toupper(title)
	now = "start"; next
}
/^\/\*/ {
	inside = !/\*\//
	line = $0; sub(/^\/\* ?/, "", line); sub(/ ?\*\/$/, "", line)
	if (first++ == 0) sub(/^consan.h: the/, "The", line)
	mode("text"); print text(line); next
}
inside {
	inside = !/\*\//
	line = $0; sub(/ ?\*\/$/, "", line)
	if (line ~ /^ \*     /) { if (!sample) print ".PP\n.RS 4\n.nf"; sample = 1 }
	else if (sample) { print ".fi\n.RE\n.PP"; sample = 0 }
	if (line ~ /^ \*  - /) { print ".IP \\(bu 2"; sub(/^ \*  - /, " * ", line) }
	if (line ~ /^ \*$/) print ".PP"
	else print text(line)
	next
}
{
	mode("code"); gsub(/\\/, "\\e"); gsub(/CONSAN_API /, ""); gsub(/-/, "\\-"); gsub(/\t/, "    ")
	if ($0 ~ /{$/) struct = 1
	if ($0 ~ /^};/) struct = 0
	print
}
END { mode("start"); print ".SH SEE ALSO\nconsan\\-run(1), consan(1)" }
