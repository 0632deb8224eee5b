# Enforces modules.txt, its first argument, for includes. Reads every #include "..." and prints
# those that name a module that the including one may not use, or another header of a
# module than its public one: MODULE/MODULE.h (NAME.h for libconsan/NAME), or a table: *.def,
# and the names of its rows, *codes.h, which have a header of their own as a new row changes them.
function module(path,    part, n) {
	n = split(path, part, "/")
	if (part[1] == "libconsan") return n == 2 ? "libconsan" : part[2]
	return part[1] == "instrument" ? part[2] : part[1]
}
# Path without "." and "..".
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
function complain(why) {
	printf "%s:%d: %s\n", FILENAME, FNR, why
	bad++
}
FILENAME ~ /modules\.txt$/ {
	if ($1 ~ /:$/) {
		name = $1; sub(/:$/, "", name)
		may[name] = $0; sub(/^[^:]*:/, "", may[name])
	}
	next
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	from = module(FILENAME)
	split($0, quoted, "\"")
	path = quoted[2]
	if (path ~ /^(libconsan|instrument|shadow|reports|kernels|tests)\//) path = normal(path)
	else {
		dir = FILENAME; sub(/\/[^\/]*$/, "", dir)
		path = normal(dir "/" path)
	}
	to = module(path)
	seen++
	if (!(from in may)) {
		complain("no module " from " in the table")
		next
	}
	if (from == to) next
	if (index(" " may[from] " ", " " to " ") == 0)
		complain(from " may not include " to " (" path ")")
	else if (to != "libconsan" && path !~ ("/" to "\\.h$") && path !~ /(\.def|codes\.h)$/)
		complain("not the public header of " to ": " path)
}
END {
	printf "layers: %d includes between modules, %d not allowed\n", seen, bad + 0
	exit bad > 0 || !seen
}
