/* lib_dnn: handles of cuDNN. Its operators have no equivalent on the CPU: they are refused
 * (lib_calls.def). */
#include "library.h"

#include <stdlib.h>

#define CALL(name, ...) \
	__attribute__((visibility("default"))) int name(__VA_ARGS__); \
	int name(__VA_ARGS__)

enum { /* cudnnStatus_t of cuDNN 9 */
	DNN_SUCCESS = 0,
	DNN_NOT_INITIALIZED = 1001,
	DNN_BAD_PARAM = 2000,
};

struct dnn { void *stream; };

CALL(cudnnCreate, void **out)
{
	struct dnn *d;

	if (!out)
		return DNN_BAD_PARAM;
	if (device_ready())
		return DNN_NOT_INITIALIZED;
	d = base_alloc(sizeof *d);
	*d = (struct dnn){ NULL };
	handle_put(d, HANDLE_DNN, d);
	*out = d;
	return DNN_SUCCESS;
}

CALL(cudnnDestroy, void *handle)
{
	struct dnn *d = handle_get(handle, HANDLE_DNN);

	if (!handle_drop(handle, HANDLE_DNN))
		return DNN_BAD_PARAM;
	free(d);
	return DNN_SUCCESS;
}

CALL(cudnnSetStream, void *handle, void *stream)
{
	struct dnn *d = handle_get(handle, HANDLE_DNN);

	if (!d)
		return DNN_BAD_PARAM;
	d->stream = stream;
	return DNN_SUCCESS;
}

CALL(cudnnGetStream, void *handle, void **stream)
{
	const struct dnn *d = handle_get(handle, HANDLE_DNN);

	if (!d || !stream)
		return DNN_BAD_PARAM;
	*stream = d->stream;
	return DNN_SUCCESS;
}
