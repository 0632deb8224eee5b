# Enforces the module table of libconsan/DESIGN.md, section 2. Reads every #include "..." and
# prints those that name a module that the including one may not use, or another header of a
# module than its public one: MODULE/MODULE.h (NAME.h for libconsan/NAME), or a table, *.def.
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
BEGIN {
	# libconsan: the public headers of the library, which include none but each other
	may["libconsan"] = ""
	may["base"] = "libconsan"
	may["options"] = "libconsan base"
	may["event"] = "libconsan base"
	may["ptx"] = "libconsan base event"
	may["exec"] = "libconsan base event ptx"
	may["shadow"] = "base"
	may["finding"] = "libconsan base event"
	may["check"] = "libconsan base event shadow finding"
	may["reports"] = "libconsan base event options finding"
	may["record"] = "base"
	may["rewrite"] = "libconsan base event ptx record"
	may["decode"] = "libconsan base event ptx shadow record rewrite"
	may["session"] = "libconsan base options event ptx exec shadow finding check reports record rewrite decode"
	may["cuda"] = "libconsan base event ptx finding session"
	may["inject"] = "libconsan base event ptx record rewrite decode session"
	may["cli"] = "libconsan base options event ptx finding check reports session"
	may["kernels"] = ""
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
	else if (to != "libconsan" && path !~ ("/" to "\\.h$") && path !~ /\.def$/)
		complain("not the public header of " to ": " path)
}
END {
	printf "layers: %d includes, %d out of bounds\n", seen, bad + 0
	exit bad > 0 || !seen
}
