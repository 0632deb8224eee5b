// Part of inside.cu: grids and graphs that kernels launch.

/* ---- grids that kernels launch ---- */

// the parent writes after the launch
__global__ void parent_writes(int *a, int *b, bool fixed)
{
	if (fixed) a[0] = 5;
	copy<<<1, N>>>(a, b);
	if (!fixed) a[0] = 5;
}
CASE(parent_later, CS1002) { parent_writes<<<1, 1>>>(m, out, fixed); }

// the parent reads what its child writes: there is no join
__global__ void parent_reads(int *a, int *b, bool fixed)
{
	if (fixed) b[0] = a[0];
	set<<<1, N>>>(a, 1);
	if (!fixed) b[0] = a[0];
}
CASE(parent_joins, CS1002) { parent_reads<<<1, 1>>>(m, out, fixed); }

// another thread of the block writes, and nothing orders it before the launch
__global__ void others_write(int *a, int *b, bool fixed)
{
	a[threadIdx.x] = threadIdx.x;
	if (fixed) __syncthreads();
	if (threadIdx.x == 0) copy<<<1, N>>>(a, b);
}
CASE(block_writes, CS1002) { others_write<<<1, N>>>(m, out, fixed); }

// a block that counted, without a fence before
__global__ void blocks_write(int *a, int *b, int *n, bool fixed)
{
	a[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
	if (fixed) __threadfence();
	__syncthreads();
	if (threadIdx.x == 0 && atomicAdd(n, 1) == gridDim.x - 1) {
		if (fixed) __threadfence();
		copy<<<1, N>>>(a, b);
	}
}
CASE(last_block, CS1002) { blocks_write<<<4, N / 4>>>(m, out, m + N, fixed); }

// two children in two streams, and in the one NULL stream of the block
__global__ void children(int *a, int *b, bool fixed)
{
	cudaStream_t s, t;

	cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
	cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
	set<<<1, N, 0, fixed ? 0 : s>>>(a, 1);
	copy<<<1, N, 0, fixed ? 0 : t>>>(a, b);
	cudaStreamDestroy(s);
	cudaStreamDestroy(t);
}
CASE(child_streams, CS1002) { children<<<1, 1>>>(m, out, fixed); }

// the NULL streams of two blocks
__global__ void blocks_launch(int *a, bool fixed) { set<<<1, N>>>(fixed ? a + N * blockIdx.x : a, blockIdx.x); }
CASE(child_blocks, CS1001) { blocks_launch<<<2, 1>>>(m, fixed); }

// an event between two streams
__global__ void with_event(int *a, int *b, bool fixed)
{
	cudaStream_t s, t;
	cudaEvent_t e;

	cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
	cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
	cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
	set<<<1, N, 0, s>>>(a, 1);
	cudaEventRecord(e, s);
	if (fixed) cudaStreamWaitEvent(t, e, 0);
	copy<<<1, N, 0, t>>>(a, b);
	cudaEventDestroy(e);
}
CASE(child_event, CS1002) { with_event<<<1, 1>>>(m, out, fixed); }

// fire and forget, against the tail
__global__ void forget(int *a, int *b, bool fixed)
{
	set<<<1, N, 0, cudaStreamFireAndForget>>>(a, 1);
	copy<<<1, N, 0, fixed ? cudaStreamTailLaunch : cudaStreamFireAndForget>>>(a, b);
}
CASE(fire_and_forget, CS1002) { forget<<<1, 1>>>(m, out, fixed); }

// the tail comes after what the whole grid does
__global__ void tail(int *a, int *b, bool fixed)
{
	if (threadIdx.x == 0) copy<<<1, N, 0, fixed ? cudaStreamTailLaunch : 0>>>(a, b);
	a[threadIdx.x] = threadIdx.x;
}
CASE(tail_launch, CS1002) { tail<<<1, N>>>(m, out, fixed); }

// the child of a child
__global__ void child_launches(int *a, int *b) { if (threadIdx.x == 0) set<<<1, N>>>(a, 1); b[threadIdx.x] = 0; }
__global__ void grandparent(int *a, int *b, bool fixed)
{
	if (fixed) b[N] = a[3];
	child_launches<<<1, 32>>>(a, b);
	if (!fixed) b[N] = a[3];
}
CASE(grandchild, CS1002) { grandparent<<<1, 1>>>(m, out, fixed); }

// cudaMemcpyAsync in a kernel
__global__ void copies(int *a, int *b, bool fixed)
{
	if (fixed) a[1] = 3;
	cudaMemcpyAsync(b, a, N * sizeof *a, cudaMemcpyDeviceToDevice, 0);
	if (!fixed) a[1] = 3;
}
CASE(child_copy, CS1002) { copies<<<1, 1>>>(m, out, fixed); }
__global__ void fills(int *a, bool fixed)
{
	cudaMemsetAsync(a, 0, N * sizeof *a, 0);
	set<<<1, N, 0, fixed ? 0 : cudaStreamFireAndForget>>>(a, 1);
}
CASE(child_fill, CS1001) { fills<<<1, 1>>>(m, fixed); }

// copies and fills of three dimensions, to the byte
enum { PITCH = 64, ROWS = 2, DEPTH = 3, WIDTH = 40 };
__device__ cudaMemcpy3DParms box_copy(int *to, int *from)
{
	cudaMemcpy3DParms p = {};

	p.dstPtr = cudaPitchedPtr{ to, PITCH, PITCH, ROWS };
	p.srcPtr = cudaPitchedPtr{ from, PITCH, PITCH, ROWS };
	p.srcPos.z = 1;
	p.extent = cudaExtent{ WIDTH, ROWS, DEPTH };
	p.kind = cudaMemcpyDeviceToDevice;
	return p;
}
__global__ void copies_box(int *a, int *b, bool fixed)
{
	cudaMemcpy3DParms p = box_copy(b, a);

	cudaMemcpy3DAsync(&p, 0);
	p.extent.width = 0; // it was read at the call
	a[3 * ROWS * PITCH / 4 + (fixed ? WIDTH : 0) / 4] = 3; // beside the last plane
}
CASE(child_copy_box, CS1002) { copies_box<<<1, 1>>>(m, out, fixed); }
__global__ void fills_box(int *a, bool fixed)
{
	cudaMemset3DAsync(cudaPitchedPtr{ a, PITCH, PITCH, ROWS }, 0, cudaExtent{ WIDTH, ROWS, DEPTH },
		cudaStreamFireAndForget);
	set<<<1, 2, 0, cudaStreamFireAndForget>>>(a + PITCH / 4 + (fixed ? WIDTH : WIDTH - 4) / 4, 1);
}
CASE(child_fill_box, CS1001) { fills_box<<<1, 1>>>(m, fixed); }
// the parameters are read by the thread that calls
__global__ void reads_box(int *a, int *b, bool fixed)
{
	__shared__ cudaMemcpy3DParms p;

	if (threadIdx.x == 0) p = box_copy(b, a);
	if (fixed) __syncthreads();
	if (threadIdx.x == 32) cudaMemcpy3DAsync(&p, 0);
}
CASE(child_reads_box, CS102) { reads_box<<<1, 64>>>(m, out, fixed); }

// the host's stream waits for the children, too
__global__ void sets(int *a) { set<<<1, N, 0, cudaStreamFireAndForget>>>(a, 1); }
CASE(host_stream, CS1002)
{
	cudaStream_t t;

	CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	sets<<<1, 1, 0, stream>>>(m);
	copy<<<1, N, 0, fixed ? stream : t>>>(m, out);
	CHECK(cudaDeviceSynchronize());
}
CASE(host_reads, CS1003)
{
	sets<<<1, 1, 0, stream>>>(m);
	if (fixed) CHECK(cudaStreamSynchronize(stream));
	if (m[4] == 7) printf("seven\n");
	CHECK(cudaDeviceSynchronize());
}

/* ---- graphs that kernels launch ---- */

static cudaGraphExec_t device_graph(cudaGraph_t of, bool upload = true)
{
	cudaGraphInstantiateParams p = {};
	cudaGraphExec_t exec;

	p.flags = cudaGraphInstantiateFlagDeviceLaunch | (upload ? cudaGraphInstantiateFlagUpload : 0);
	p.uploadStream = stream;
	CHECK(cudaGraphInstantiateWithParams(&exec, of, &p));
	CHECK(cudaStreamSynchronize(stream));
	return exec;
}

static cudaGraphExec_t graph_set(int *a, int v)
{
	cudaGraph_t g;

	CHECK(cudaGraphCreate(&g, 0));
	kernel_set(g, a, v);
	return device_graph(g);
}

static cudaGraphExec_t graph_copy(int *a, int *b)
{
	void *args[] = { &a, &b };
	cudaGraph_t g;

	CHECK(cudaGraphCreate(&g, 0));
	kernel(g, (void *)copy, N, args);
	return device_graph(g);
}

/* Launches one or two graphs, and writes *a before or after that. */
__global__ void graphs(cudaGraphExec_t g, cudaStream_t s, cudaGraphExec_t h, cudaStream_t t, int *a, bool before)
{
	if (a && before) *a = 5;
	cudaGraphLaunch(g, s);
	if (h) cudaGraphLaunch(h, t);
	if (a && !before) *a = 5;
}

static cudaGraphNode_t kernel_graphs(cudaGraphExec_t g, cudaStream_t s, cudaGraphExec_t h = NULL,
	cudaStream_t t = NULL, int *a = NULL)
{
	void *args[] = { &g, &s, &h, &t, &a, &fixed };
	return kernel(graph, (void *)graphs, 1, args);
}

// the next node of the launching graph does not wait for what was fired; the tail waits for all nodes
CASE(graph_fired, CS1002)
{
	cudaGraphNode_t k = kernel_graphs(graph_copy(m, out),
		fixed ? cudaStreamGraphTailLaunch : cudaStreamGraphFireAndForget);
	kernel_set(graph, m, 1, &k);
	launch();
}

// the launching thread writes after the launch
CASE(graph_parent, CS1002)
{
	kernel_graphs(graph_copy(m, out), cudaStreamGraphFireAndForget, NULL, NULL, m);
	launch();
}

// two graphs that are fired, two tails
CASE(graph_two, CS1001)
{
	cudaStream_t s = fixed ? cudaStreamGraphTailLaunch : cudaStreamGraphFireAndForget;
	kernel_graphs(graph_set(m, 1), s, graph_set(m, 2), s);
	launch();
}

// a tail waits for the children of its graph, not for its siblings
CASE(graph_sibling, CS1002)
{
	kernel_graphs(graph_set(m, 1), fixed ? cudaStreamGraphFireAndForget : cudaStreamGraphFireAndForgetAsSibling,
		graph_copy(m, out), cudaStreamGraphTailLaunch);
	launch();
}

// the stream of the host waits for all of it
static void with_stream(cudaStream_t how)
{
	cudaGraphExec_t exec;
	cudaStream_t t;

	kernel_graphs(graph_set(m, 1), how);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	CHECK(cudaGraphLaunch(exec, stream));
	copy<<<1, N, 0, fixed ? stream : t>>>(m, out);
	CHECK(cudaDeviceSynchronize());
}
CASE(graph_stream, CS1002) { with_stream(cudaStreamGraphFireAndForget); }
CASE(graph_sibling_stream, CS1002) { with_stream(cudaStreamGraphFireAndForgetAsSibling); }
CASE(graph_tail_stream, CS1002) { with_stream(cudaStreamGraphTailLaunch); }

// the nodes of a graph that is launched, one of them a graph
CASE(graph_nodes, CS1001)
{
	cudaGraph_t g, part;
	cudaGraphNode_t node;

	CHECK(cudaGraphCreate(&g, 0));
	CHECK(cudaGraphCreate(&part, 0));
	kernel_set(part, m, 1);
	CHECK(cudaGraphAddChildGraphNode(&node, g, NULL, 0, part));
	kernel_set(g, m, 2, fixed ? &node : NULL);
	kernel_graphs(device_graph(g), cudaStreamGraphFireAndForget);
	launch();
}
