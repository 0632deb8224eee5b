# Enforces modules.txt for symbols: arguments are modules.txt and the output of `nm -A` on the
# objects of all modules. Prints each symbol that a module takes from one that it may not use.
function module(path,    part, n) {
	sub(/^[^\/]*\//, "", path) # the build folder
	n = split(path, part, "/")
	return part[1] == "libconsan" || part[1] == "instrument" ? part[2] : part[1]
}
FILENAME ~ /modules\.txt$/ {
	if ($1 ~ /:$/) {
		name = $1; sub(/:$/, "", name)
		may[name] = $0 " "; sub(/^[^:]*:/, "", may[name])
	}
	next
}
{
	split($1, place, ":")
	if ($(NF - 1) == "U") user[place[1], $NF] = 1
	else if ($(NF - 1) ~ /[TDBRVWC]/) owner[$NF] = module(place[1])
}
END {
	for (k in user) {
		split(k, use, SUBSEP)
		to = owner[use[2]]
		from = module(use[1])
		if (to == "" || from == to) continue
		seen++
		if (index(may[from], " " to " ")) continue
		printf "%s: %s may not use %s of %s\n", use[1], from, use[2], to
		bad++
	}
	printf "layers: %d symbols used between modules, %d not allowed\n", seen, bad + 0
	exit bad > 0 || !seen
}
