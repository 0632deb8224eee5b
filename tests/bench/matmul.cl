/* The 16x16 tiled matrix product, for Oclgrind; its CUDA twin is matmul.cu. */
__kernel void matmul(__global const float *a, __global const float *b, __global float *c, int n)
{
	__local float as[16][16], bs[16][16];
	int x = get_local_id(0), y = get_local_id(1);
	int col = get_group_id(0) * 16 + x, row = get_group_id(1) * 16 + y;
	float sum = 0;

	for (int t = 0; t < n; t += 16) {
		as[y][x] = a[row * n + t + x];
		bs[y][x] = b[(t + y) * n + col];
		barrier(CLK_LOCAL_MEM_FENCE);
		for (int k = 0; k < 16; k++)
			sum += as[y][k] * bs[k][x];
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	c[row * n + col] = sum;
}
