/* gpu_auto: --backend=auto: would the GPU's records of this program show all that the cpu backend shows?
 * Judged by the program's file, before it runs. */
#include "gpu_parts.h"

#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options that have an effect on the CPU executor only. NULL: none is given. */
static const char *cpu_option(const struct options *o)
{
	if (*o->arch)
		return "--arch";
	if (o->seed || *o->schedule || o->explore)
		return "--seed, --schedule and --explore";
	if (o->async || o->reads)
		return "--async and --reads";
	if (o->cluster_fallback)
		return "--cluster-fallback";
	if (o->verify_fixes == OPT_VERIFY_FIXES_YES)
		return "--verify-fixes=yes";
	if (*o->dump_ptx || *o->replace_ptx)
		return "--dump-ptx and --replace-ptx";
	if (o->launch_blocking)
		return "--launch-blocking";
	return NULL;
}

static bool kernel_suits(const struct options *o, const struct gpu_module *m, const char *kernel, char why[320])
{
	const struct rewrite_func *f = rewrite_find(m->code, kernel);
	uint64_t hidden = o->gpu_then_cpu ? 0 : gpu_hidden(m, kernel);
	unsigned k = 0;

	if (f && f->refused)
		snprintf(why, 320, "GPU mode does not check kernel %.80s: %.200s", kernel, f->refused);
	else if (f && f->unrecorded && gpu_global_of(o))
		snprintf(why, 320, "GPU mode does not record all that kernel %.80s accesses", kernel);
	else if (hidden) {
		while (!(hidden >> k & 1))
			k++;
		snprintf(why, 320, "of kernel %.80s, %s", kernel, finding_hides(k)->why);
	}
	return !*why;
}

static bool text_suits(const struct options *o, const char *text, size_t n, char why[320])
{
	struct consan_err e = { 0 };
	struct gpu_module *m = gpu_module_open("program", text, n, false, gpu_global_of(o), o->gpu_drain, &e);

	if (!m) {
		snprintf(why, 320, "%.300s", e.text);
		return false;
	}
	for (size_t k = 0; k < m->ptx->nfunc && !*why; k++)
		if (m->ptx->func[k].entry && m->ptx->func[k].ninsn)
			kernel_suits(o, m, m->ptx->func[k].name, why);
	gpu_module_close(m);
	return !*why;
}

bool gpu_suits(const struct options *o, const char *path, char why[320])
{
	const char *option = cpu_option(o);
	struct consan_err e = { 0 };
	struct text file = { 0 };
	unsigned modules;

	*why = 0;
	if (option) {
		snprintf(why, 320, "%s have an effect on the CPU only", option);
		return false;
	}
	if (o->gpu_global != SWITCH_YES && !o->no_global && !o->gpu_then_cpu) {
		snprintf(why, 320, "a GPU does not record what host code accesses, which counts as not checked only with "
			"--gpu-global (--no-global says that global memory need not be checked)");
		return false;
	}
	modules = text_read(&file, path, &e) && file.at ? consan_image_modules(file.at, file.n) : 0;
	if (!modules)
		snprintf(why, 320, "the program's own file has no PTX, so its kernels are known only when it runs");
	for (unsigned k = 0; k < modules && !*why; k++) {
		size_t n;
		char *text = session_image_ptx(file.at, file.n, k, &n, &e);

		if (text)
			text_suits(o, text, n, why);
		else
			snprintf(why, 320, "%.300s", e.text);
		free(text);
	}
	text_free(&file);
	return !*why;
}
