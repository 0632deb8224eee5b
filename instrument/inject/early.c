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

static unsigned kernels_of(struct inject_image *i)
{
	unsigned n = 0;

	while (slices_kernel(inject_slices(i), n))
		n++;
	return n;
}

/* A program with many kernels launches few of them: then none is made before its module is loaded. */
static void find_in(const char *file, size_t bytes)
{
	const unsigned modules = consan_image_modules(file, bytes);
	VEC(struct inject_image *) image = { 0 };
	unsigned kernels = 0;
	size_t n;

	for (unsigned k = 0; k < modules && kernels <= cut_few(); k++) {
		char *ptx = gpu_likely_ptx(file, bytes, k, &n);
		struct inject_image *i = ptx ? inject_image_early(ptx, n, program_invocation_short_name) : NULL;

		if (!i)
			continue;
		kernels += kernels_of(i);
		vec_push(&image, i);
	}
	for (size_t k = 0; k < image.n && kernels <= cut_few(); k++)
		inject_ahead(image.at[k]);
	vec_free(&image);
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
