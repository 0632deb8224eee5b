# Makes a C table of specimens for `consan explain`: for each rule the shortest one whose file name
# begins with its code.
function flush_file() {
	if (file == "") return
	if (!(code in best) || lines < best[code]) {
		best[code] = lines; path[code] = file; text[code] = body
	}
}
FNR == 1 {
	flush_file()
	file = FILENAME; body = ""; lines = 0
	code = FILENAME; sub(/.*\/cs/, "", code); code = "CS" substr(code, 1, 3)
}
/^\/\/ options:/ { lines += 1000 } # preferably without options
/^\/\/ (launch|options|arg|expect|also|edit):/ { next }
/^\.(version|target|address_size)/ { next }
/^$/ && (blank || !lines) { next }
{ blank = /^$/ }
{
	line = $0; gsub(/\\/, "\\\\", line); gsub(/"/, "\\\"", line); gsub(/\t/, "\\t", line)
	body = body "\t\"" line "\\n\"\n"; lines++
}
END {
	flush_file()
	print "/* Made by tests/tools/examples.awk. */"
	print "#include \"libconsan/finding/rule_example.h\"\n"
	print "const struct rule_example rule_examples[] = {"
	n = 0
	for (c in best) order[++n] = c
	for (i = 1; i <= n; i++)
		for (k = i + 1; k <= n; k++)
			if (order[k] < order[i]) { t = order[i]; order[i] = order[k]; order[k] = t }
	for (i = 1; i <= n; i++)
		printf "\t{ \"%s\", \"%s\",\n%s\t},\n", order[i], path[order[i]], text[order[i]]
	print "\t{ 0 }\n};"
}
