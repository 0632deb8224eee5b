/* devices: the host's part of a program on several devices. */
#pragma once

#include "harness.h"

/* Returns only if there are so many devices, each of which can access the memory of all others. */
static void devices_require(const struct program &p, int n)
{
	int found;

	CUDA(cudaGetDeviceCount(&found));
	if (found < n) {
		fprintf(stderr, "%s: it needs %d devices, and there are %d\n", p.name, n, found);
		exit(3);
	}
}

/* Device d may access the memory of all others below n. */
static void devices_enable_peers(int d, int n)
{
	CUDA(cudaSetDevice(d));
	for (int peer = 0; peer < n; peer++)
		if (peer != d) {
			const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);

			if (status == cudaErrorPeerAccessAlreadyEnabled)
				cudaGetLastError();
			else
				CUDA(status);
		}
}

static void devices_synchronize(int n)
{
	for (int d = n; d-- > 0;) {
		CUDA(cudaSetDevice(d));
		CUDA(cudaDeviceSynchronize());
	}
}

/* n elements of pinned memory; cudaFreeHost() frees them. */
template <class T> static T *devices_pinned(uint64_t n)
{
	T *at;

	CUDA(cudaMallocHost(&at, n * sizeof *at));
	return at;
}
