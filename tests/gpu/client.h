/* client: what the programs for the fake driver share. */
#ifndef CONSAN_TESTS_GPU_CLIENT_H
#define CONSAN_TESTS_GPU_CLIENT_H

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call) do { \
		CUresult r_ = (call); \
		if (r_) { \
			printf("%s: error %d\n", #call, r_); \
			exit(1); \
		} \
	} while (0)

#endif
