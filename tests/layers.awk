# Enforces the room table of libconsan/DESIGN.md, section 2: reads every
# #include "..." and prints those that open a door they may not.
function room(path,    part) {
	split(path, part, "/")
	if (path ~ /^libconsan\/(ptx|exec|cuda|check)\//) return part[2]
	if (path ~ /^libconsan\/(consan|door|gpu|criterion)\.h$/) return "consan.h"
	if (path ~ /^libconsan\/(consan|session|fallback|load|view|replay|main|main_[a-z]+|gpu|gpu_[a-z]+)\.[ch]$/) return "door"
	return part[1] == "libconsan" ? "vocabulary" : part[1]
}
function normal(path,    part, n, i, out, top) {
	n = split(path, part, "/")
	top = 0
	for (i = 1; i <= n; i++) {
		if (part[i] == "..") top--
		else if (part[i] != ".") out[++top] = part[i]
	}
	path = out[1]
	for (i = 2; i <= top; i++) path = path "/" out[i]
	return path
}
BEGIN {
	may["vocabulary"] = "vocabulary"
	may["ptx"] = "vocabulary ptx"
	may["exec"] = "vocabulary ptx exec"
	may["cuda"] = "vocabulary consan.h cuda reports"
	may["shadow"] = "vocabulary shadow"
	may["check"] = "vocabulary shadow check"
	may["instrument"] = "vocabulary ptx shadow instrument consan.h"
	may["reports"] = "vocabulary reports"
	may["kernels"] = "kernels"
	may["consan.h"] = "vocabulary consan.h"
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	from = room(FILENAME)
	if (from == "door" || from == "tests") next
	split($0, quoted, "\"")
	target = quoted[2]
	dir = FILENAME; sub(/\/[^\/]*$/, "", dir)
	path = normal(dir "/" target)
	to = room(path)
	seen++
	if (index(" " may[from] " ", " " to " ") == 0) {
		printf "%s:%d: %s may not include %s (%s)\n", FILENAME, FNR, from, path, to
		bad++
	}
}
END {
	printf "layers: %d includes, %d out of bounds\n", seen, bad + 0
	exit bad > 0 || !seen
}
