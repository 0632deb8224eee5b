/* no_ptx: what the report says of a module without PTX, and what to do about it (advice.def). */
#include "internal.h"

#include "libconsan/ptx/ptx.h"

#include <link.h>
#include <string.h>

static int has_path(struct dl_phdr_info *info, size_t size, void *path)
{
	return info->dlpi_name && strstr(info->dlpi_name, path);
}

/* What to do about machine code that was made inside of the program. */
static const char *compiler_advice(void)
{
	static const struct { const char *path, *advice; } row[] = {
#define ADVICE(path, advice) { path, advice },
#include "advice.def"
#undef ADVICE
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (dl_iterate_phdr(has_path, (void *)row[i].path))
			return row[i].advice;
	return "make it under consan-run by ptxas, nvcc, NVRTC or nvJitLink as a shared library, or load PTX";
}

void remark_no_ptx(const char *name, const char *has, const char *library, bool made)
{
	const struct consan_device *d = device_info();
	const char *suffix = fatbin_suffix(d->suffix);
	const bool ptx = strstr(has, "compute_") != NULL;
	struct text t = { 0 };

	if (ptx)
		text_printf(&t, "%s: no PTX for the emulated sm_%u%s (it has %s); ", name, d->sm, suffix, has);
	else
		text_printf(&t, "%s: has no PTX, only machine code (%s); ", name, *has ? has : "no image at all");
	if (library)
		text_printf(&t, "kernels of %s run on a GPU only (--backend=gpu)", library);
	else if (made)
		text_printf(&t, "%s", compiler_advice());
	else
		text_printf(&t, "%scompile with -gencode=arch=compute_%u%s,code=compute_%u%s",
			ptx ? "choose another GPU with --arch, or " : "", d->sm, suffix, d->sm, suffix);
	remark(library && consan_ignores_libraries(device_session()) ? REMARK_NOTE : REMARK_NOT_LOADED,
		"%s", t.at);
	text_free(&t);
}
