/* Each thread stores its number and loads that of a thread of another warp. */
extern "C" __global__ void exchange(int *out, int wait)
{
	__shared__ int tile[64];

	tile[threadIdx.x] = threadIdx.x; // the racy store
	if (wait)
		__syncthreads();
	out[threadIdx.x] = tile[threadIdx.x ^ 32];
}
