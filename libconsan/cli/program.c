/* program: finds and checks the program that consan-run runs. */
#include "run.h"

#include "libconsan/session/session.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

void print_error(const char *fmt, ...)
{
	va_list ap;

	fputs("consan-run: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

char *find_program(const char *name)
{
	const char *path = getenv("PATH"), *at, *end;
	struct text t = { 0 };

	if (strchr(name, '/'))
		return is_file(name) ? base_strdup(name) : NULL;
	for (at = path ? path : "/usr/local/bin:/bin:/usr/bin"; ; at = end + 1) {
		end = strchrnul(at, ':');
		t.n = 0;
		text_printf(&t, "%.*s/%s", (int)(end - at), end > at ? at : ".", name);
		if (is_file(t.at) && !access(t.at, X_OK))
			return t.at;
		if (!*end)
			break;
	}
	text_free(&t);
	return NULL;
}

/* Does the program have a dynamic linker? It loads consan. */
static bool is_dynamic(const Elf64_Ehdr *h, int fd)
{
	Elf64_Phdr p;

	for (unsigned i = 0; i < h->e_phnum; i++) {
		if (pread(fd, &p, sizeof p, (off_t)(h->e_phoff + i * sizeof p)) != sizeof p)
			return false;
		if (p.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/* Will the kernel start it in secure mode (AT_SECURE)? */
static bool gains_rights(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != getuid())
		|| (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getgid())
		|| (getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0);
}

int check_program(const char *path)
{
	Elf64_Ehdr h = { 0 };
	ssize_t n;
	int fd, status = 0;

	if (access(path, X_OK)) {
		print_error("%s: %s", path, errno == EACCES ? "not executable" : strerror(errno));
		return EXIT_NOT_RUN;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* executable but not readable: let the kernel decide */
	n = pread(fd, &h, sizeof h, 0);
	if (n >= 2 && !memcmp(&h, "#!", 2)) {
		close(fd);
		return 0;
	}
	if (n < (ssize_t)sizeof h || memcmp(h.e_ident, ELFMAG, SELFMAG)) {
		print_error("%s: not a program", path);
		status = EXIT_NOT_RUN;
	} else if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != EM_X86_64) {
		print_error("%s: not an x86-64 program", path);
		status = EXIT_NOT_RUN;
	} else if (!is_dynamic(&h, fd)) {
		print_error("%s: statically linked: consan cannot be loaded into it; link it dynamically", path);
		status = CONSAN_EXIT_UNCHECKED;
	} else if (gains_rights(fd)) {
		print_error("%s: it gains rights when it starts (set-user-ID, set-group-ID or file capabilities), "
			"and the dynamic linker loads nothing else into such a program; run a copy without them",
			path);
		status = CONSAN_EXIT_UNCHECKED;
	}
	close(fd);
	return status;
}
