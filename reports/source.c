/* source: the text that a site points to. The file may have been compiled
 * elsewhere, so it is looked for by ever shorter ends of its path. */
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* the one that was changed last */
static char newest[512];
static int64_t newest_time;

static FILE *open_source(const char *file)
{
	struct stat st;

	while (file && *file) {
		if (!stat(file, &st) && S_ISREG(st.st_mode)) {
			if (!newest_time || st.st_mtime > newest_time) {
				snprintf(newest, sizeof newest, "%s", file);
				newest_time = st.st_mtime;
			}
			return fopen(file, "re");
		}
		file = strchr(file, '/');
		if (file)
			file += strspn(file, "/");
	}
	return NULL;
}

const char *report_source_changed(int64_t built)
{
	return newest_time > built ? newest : NULL;
}

char *report_source_line(const char *file, unsigned line)
{
	FILE *in = line ? open_source(file) : NULL;
	char *text = NULL;
	size_t cap = 0;
	ssize_t n = -1;

	if (!in)
		return NULL;
	for (unsigned k = 0; k < line; k++) {
		n = getline(&text, &cap, in);
		if (n < 0)
			break;
	}
	fclose(in);
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[strcspn(text, "\r\n")] = 0;
	return text;
}
