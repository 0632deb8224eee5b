/* early: the modules in the program's own file are found while the driver starts, so that their kernels
 * are assembled meanwhile, and not only when the program loads them. The driver cannot be asked yet which GPU
 * there is: it is taken to be the one for which a module has PTX. */
#include "cut.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "instrument/rewrite/rewrite.h"

/* A larger file is not searched. */
#define MOST_BYTES (64u << 20)

struct found {
	VEC(struct inject_image *) image;
	size_t kernels;
};

/* A program with many kernels launches few of them: then none is made before its module is loaded. */
static bool has_few(const struct found *f)
{
	return f->kernels <= cut_few();
}

static bool add(void *user, char *ptx, size_t n)
{
	struct found *f = user;
	struct inject_image *i = inject_image_early(ptx, n, program_invocation_short_name);

	if (!i)
		return true;
	f->kernels += slices_kernels(inject_slices(i));
	vec_push(&f->image, i);
	return has_few(f);
}

static void find_in(const char *file, size_t bytes)
{
	struct found f = { 0 };

	gpu_each_likely_ptx(file, bytes, add, &f);
	for (size_t k = 0; k < f.image.n && has_few(&f); k++)
		inject_ahead(f.image.at[k]);
	vec_free(&f.image);
}

void early_find(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat s;
	void *file;

	if (fd < 0)
		return;
	if (!fstat(fd, &s) && s.st_size > 0 && s.st_size <= MOST_BYTES) {
		file = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file != MAP_FAILED) {
			find_in(file, (size_t)s.st_size);
			munmap(file, (size_t)s.st_size);
		}
	}
	close(fd);
}
