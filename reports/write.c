/* write: writes the reports that the options ask for into their files. */
#include "reports/reports.h"

#include "libconsan/event/event.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_WIDTH 100

static unsigned width_of(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	unsigned long n = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize w;

	if (!n && !ioctl(fileno(out), TIOCGWINSZ, &w))
		n = w.ws_col;
	return n >= 40 && n <= 1000 ? (unsigned)n : DEFAULT_WIDTH;
}

bool report_color(int color, FILE *out)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (color != COLOR_AUTO)
		return color == COLOR_ALWAYS;
	return isatty(fileno(out)) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

static const struct { const char *name, *suffix; } format[] = {
#define FORMAT(name, suffix) [REPORT_##name] = { #name, "." suffix },
#include "libconsan/options/formats.def"
#undef FORMAT
};

bool report_format(const char *name, enum report_format *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(format); i++)
		if (!strcmp(format[i].name, name)) {
			*to = (enum report_format)i;
			return true;
		}
	return false;
}

/* Text, if the path ends otherwise. */
static enum report_format format_of(const char *path)
{
	const size_t n = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(format); i++) {
		const size_t k = strlen(format[i].suffix);

		if (k <= n && !strcmp(path + n - k, format[i].suffix))
			return (enum report_format)i;
	}
	return REPORT_text;
}

/* --library-path: which frame is shown first; --source-root: what is quoted */
static void prepare(const struct options *o)
{
	if (o->library_path.n)
		site_libraries(o->library_path.at, o->library_path.n);
	report_source_roots(o);
}

void report_as(const struct results *r, const struct options *o, enum report_format to, FILE *out)
{
	prepare(o);
	switch (to) {
	case REPORT_html: report_html(r, o, out); return;
	case REPORT_json: report_json(r, out); return;
	case REPORT_sarif: report_sarif(r, o, out); return;
	case REPORT_junit: report_junit(r, o, out); return;
	case REPORT_github: report_github(r, o, out); return;
	case REPORT_perfetto: report_perfetto(r, out); return;
	case REPORT_text: report_text(r, o, report_color(o->color, out), width_of(out), out); return;
	}
}

/* A report is written to another file in the same folder, which then takes the place of `path`, so that no
 * reader finds a part of one. What is no file (/dev/null, a pipe, a link), or where no file can be made, is
 * written directly. *temporary: NULL, or free() it. */
static FILE *open_report(const char *path, char **temporary)
{
	const mode_t mask = umask(0);
	struct text t = { 0 };
	mode_t mode = 0666 & ~mask;
	struct stat st;
	int fd;

	umask(mask);
	*temporary = NULL;
	if (!lstat(path, &st)) {
		if (!S_ISREG(st.st_mode))
			return fopen(path, "we");
		mode = st.st_mode & 0777;
	}
	text_printf(&t, "%s.XXXXXX", path);
	fd = mkostemp(t.at, O_CLOEXEC);
	if (fd < 0) {
		text_free(&t);
		return fopen(path, "we");
	}
	fchmod(fd, mode);
	*temporary = t.at;
	return fdopen(fd, "w");
}

/* Writes one report; to stdout if the name of the file, less its suffix, is "-". text: whatever the
 * suffix is. */
static bool write_file(const struct results *r, const struct options *o, const char *pattern,
	bool text, struct consan_err *e)
{
	char *path = options_path(pattern, getpid());
	char *temporary = NULL;
	FILE *out = options_is_stdout(path) ? stdout : open_report(path, &temporary);
	bool ok = out != NULL;

	if (ok) {
		prepare(o);
		if (text)
			report_text(r, o, o->color == COLOR_ALWAYS, width_of(out), out);
		else
			report_as(r, o, format_of(path), out);
		ok = !ferror(out);
		ok = !(out == stdout ? fflush(out) : fclose(out)) && ok;
	}
	if (temporary) {
		int error;

		ok = ok && !rename(temporary, path);
		error = errno;
		if (!ok)
			unlink(temporary);
		free(temporary);
		errno = error;
	}
	if (!ok)
		err_set(e, CONSAN_ERR_IO, 0, 0, "%s: report not written: %s", path, strerror(errno));
	free(path);
	return ok;
}

bool report_file(const struct results *r, const struct options *o, const char *path,
	struct consan_err *e)
{
	return write_file(r, o, path, false, e);
}

bool report_files(const struct results *r, const struct options *o, struct consan_err *e)
{
	bool ok = true;

	for (size_t i = 0; i < o->report.n; i++)
		ok = report_file(r, o, o->report.at[i], e) && ok;
	return ok;
}

bool report_write(const struct results *r, const struct options *o, struct consan_err *e)
{
	bool ok = true;

	prepare(o);
	if (*o->log_file)
		ok = write_file(r, o, o->log_file, true, e);
	if (!*o->log_file || !ok) /* if the log cannot be written, stderr gets the report */
		report_text(r, o, report_color(o->color, stderr), width_of(stderr), stderr);
	fflush(stderr);
	return report_files(r, o, e) && ok;
}
