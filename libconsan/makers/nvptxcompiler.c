/* nvptxcompiler: a compiler object is made of one PTX text. */
#include "makers.h"
#include "objects.h"

#include "libconsan/origin/origin.h"

#include <stdlib.h>
#include <string.h>

static struct objects compilers = OBJECTS;

int on_nvPTXCompilerCreate(const struct maker *m, void **compiler, size_t n, const char *ptx)
{
	int (*create)(void **, size_t, const char *) =
		(__typeof__(create))maker_call(m, "nvPTXCompilerCreate");
	int result = create ? create(compiler, n, ptx) : MAKER_FAILED;

	if (!result)
		objects_add(&compilers, *compiler, base_strndup(ptx, n));
	return result;
}

int on_nvPTXCompilerDestroy(const struct maker *m, void **compiler)
{
	int (*destroy)(void **) = (__typeof__(destroy))maker_call(m, "nvPTXCompilerDestroy");

	if (compiler)
		free(objects_take(&compilers, *compiler));
	return destroy ? destroy(compiler) : MAKER_FAILED;
}

int on_nvPTXCompilerGetCompiledProgram(const struct maker *m, void *compiler, void *cubin)
{
	int (*get)(void *, void *) = (__typeof__(get))maker_call(m, "nvPTXCompilerGetCompiledProgram");
	int (*size)(void *, size_t *) =
		(__typeof__(size))maker_call(m, "nvPTXCompilerGetCompiledProgramSize");
	int result = get ? get(compiler, cubin) : MAKER_FAILED;
	const char *ptx = objects_find(&compilers, compiler);
	size_t bytes = 0;

	if (!result && ptx && size && !size(compiler, &bytes))
		origin_put(cubin, bytes, ptx, strlen(ptx));
	return result;
}
