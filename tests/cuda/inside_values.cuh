// Part of inside.cu: what nodes and grids do, and limits.

/* ---- values ---- */

static void same(const char *what, int is, int should)
{
	if (is == should) return;
	printf("%s: %d, and not %d\n", what, is, should);
	exit(1);
}

static void new_graph()
{
	if (graph) CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphCreate(&graph, 0));
}

static void conditions()
{
	cudaGraph_t body[3], inner;
	cudaGraphConditionalHandle h;
	cudaGraphNode_t node;
	cudaGraphNodeType type;
	size_t n;

	/* while, its body captured; each launch begins with the default */
	new_graph();
	h = handle(1);
	node = conditional(graph, h, cudaGraphCondTypeWhile, 1, NULL, body);
	CHECK(cudaGraphNodeGetType(node, &type));
	same("type", type, cudaGraphNodeTypeConditional);
	CHECK(cudaStreamBeginCaptureToGraph(stream, body[0], NULL, NULL, 0, cudaStreamCaptureModeGlobal));
	add<<<1, 1, 0, stream>>>(m, 3);
	count_down<<<1, 1, 0, stream>>>(h, out);
	CHECK(cudaStreamEndCapture(stream, NULL));
	CHECK(cudaGraphGetNodes(body[0], NULL, &n));
	same("nodes", (int)n, 2);
	m[0] = 0;
	out[0] = 5;
	launch();
	same("while", m[0], 15);
	out[0] = 2;
	launch();
	same("while again", m[0], 21);

	/* if with else, in both ways */
	for (unsigned v = 0; v < 2; v++) {
		new_graph();
		conditional(graph, handle(v), cudaGraphCondTypeIf, 2, NULL, body);
		kernel_set(body[0], m, 1);
		kernel_set(body[1], m, 2);
		launch();
		same("if", m[N - 1], v ? 1 : 2);
	}

	/* switch; a value without a body runs none */
	for (unsigned v = 0; v < 4; v++) {
		new_graph();
		conditional(graph, handle(v), cudaGraphCondTypeSwitch, 3, NULL, body);
		for (int k = 0; k < 3; k++) kernel_set(body[k], m, 10 + k);
		set<<<1, N>>>(m, 99);
		CHECK(cudaDeviceSynchronize());
		launch();
		same("switch", m[7], v < 3 ? 10 + (int)v : 99);
	}

	/* nested, with a child graph in the body: 3 rounds of 2 */
	new_graph();
	h = handle(1);
	cudaGraphConditionalHandle in = handle(1, 0);
	node = conditional(graph, h, cudaGraphCondTypeWhile, 1, NULL, body);
	cudaGraphNode_t again = kernel_condition(body[0], in, 1), child;
	cudaGraphNode_t loop = conditional(body[0], in, cudaGraphCondTypeWhile, 1, &again, &inner);
	cudaGraph_t part;
	CHECK(cudaGraphCreate(&part, 0));
	kernel_add(part, m, 1);
	CHECK(cudaGraphAddChildGraphNode(&child, inner, NULL, 0, part));
	int *count = out + 1;
	void *args[] = { &in, &count };
	kernel(inner, (void *)count_down, 1, args, &child);
	int *outer = out;
	void *more[] = { &h, &outer };
	cudaGraphNode_t reset = kernel_set(body[0], out + 1, 2, &loop);
	kernel(body[0], (void *)count_down, 1, more, &reset);
	set<<<1, N>>>(m, 0);
	CHECK(cudaDeviceSynchronize());
	out[0] = 3;
	out[1] = 2;
	launch();
	same("nested", m[0], 6);

	/* several launches, without a wait between them */
	new_graph();
	conditional(graph, handle(1), cudaGraphCondTypeIf, 1, NULL, body);
	kernel_add(body[0], m, 1);
	launch(3);
	same("launches", m[0], 9);
}

static void refused()
{
	cudaGraphNodeParams p = { cudaGraphNodeTypeConditional };
	cudaGraphConditionalHandle h;
	cudaGraphNode_t node;

	new_graph();
	same("no graph", cudaGraphConditionalHandleCreate(&h, NULL, 0, 0), cudaErrorInvalidValue);
	same("flags", cudaGraphConditionalHandleCreate(&h, graph, 0, 2), cudaErrorInvalidValue);
	p.conditional.handle = handle(0);
	p.conditional.type = cudaGraphCondTypeWhile;
	p.conditional.size = 2;
	same("bodies", cudaGraphAddNode(&node, graph, NULL, NULL, 0, &p), cudaErrorInvalidValue);
	p.conditional.handle = 7;
	p.conditional.size = 1;
	same("handle", cudaGraphAddNode(&node, graph, NULL, NULL, 0, &p), cudaErrorInvalidValue);
}

__global__ void fibonacci(int n, int *to)
{
	if (n < 2) {
		atomicAdd(to, n);
		return;
	}
	fibonacci<<<1, 1>>>(n - 1, to);
	fibonacci<<<1, 1, 0, cudaStreamFireAndForget>>>(n - 2, to);
}

__global__ void again(int *n)
{
	if (++*n < 6) again<<<1, 1, 0, cudaStreamTailLaunch>>>(n);
}

__global__ void shape(int *to)
{
	extern __shared__ int s[];

	s[threadIdx.x] = threadIdx.x;
	__syncthreads();
	if (threadIdx.x == 0)
		to[blockIdx.y * gridDim.x + blockIdx.x] = s[blockDim.x - 1] + 100 * gridDim.x + 1000 * gridDim.y;
}

__global__ void asks(int *to, int *e)
{
	cudaFuncAttributes a;
	size_t limit = 0;
	int device = -1, count = 0, sms = 0, version = 0, blocks = 0;
	void *heap = NULL;

	shape<<<dim3(2, 3), 40, 160>>>(to);
	e[0] = cudaGetLastError();
	shape<<<1, 2048>>>(to);
	e[1] = cudaPeekAtLastError();
	e[2] = cudaGetLastError();
	e[3] = cudaGetLastError();
	e[4] = cudaGetDevice(&device) || device || cudaGetDeviceCount(&count) || count < 1;
	e[5] = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0) || sms < 2;
	e[6] = cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize) || !limit;
	e[7] = cudaRuntimeGetVersion(&version) || version < 12000;
	e[8] = cudaFuncGetAttributes(&a, shape) || a.maxThreadsPerBlock != 1024;
	e[9] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, shape, 128, 0) || blocks < 2;
	e[10] = cudaMalloc(&heap, 64) || !heap || cudaFree(heap);
	e[11] = cudaStreamDestroy((cudaStream_t)77);
	e[12] = *cudaGetErrorName(cudaErrorInvalidValue) != 'c' || *cudaGetErrorString(cudaErrorInvalidValue) != 'i';
	printf("%s\n", cudaGetErrorName(cudaErrorInvalidValue));
}

/* Not promised, but it works on GPUs */
__global__ void tells(int *flag) { __threadfence(); atomicExch(flag, 1); }
__global__ void waits(int *flag, int *to)
{
	tells<<<1, 1, 0, cudaStreamFireAndForget>>>(flag);
	while (!atomicAdd(flag, 0)) ;
	to[0] = 1;
}

__global__ void planes(char *to, const char *from)
{
	cudaMemset2DAsync(to, 16, 7, 3, 4, 0);
	cudaMemcpy2DAsync(to + 1, 16, from, 8, 2, 4, cudaMemcpyDeviceToDevice, 0);
}

__global__ void boxes(char *to, const char *from, int *e)
{
	cudaMemcpy3DParms p = {};

	cudaMemset3DAsync(cudaPitchedPtr{ to, 8, 8, 4 }, 9, cudaExtent{ 6, 3, 2 }, 0);
	p.dstPtr = cudaPitchedPtr{ to, 8, 8, 4 };
	p.dstPos = cudaPos{ 1, 1, 1 };
	p.srcPtr = cudaPitchedPtr{ (void *)from, 4, 4, 4 };
	p.srcPos = cudaPos{ 1, 0, 0 };
	p.extent = cudaExtent{ 2, 3, 2 };
	p.kind = cudaMemcpyDeviceToDevice;
	e[0] = cudaMemcpy3DAsync(&p, 0);
	p.extent.depth = 0;
	e[1] = cudaMemcpy3DAsync(&p, 0);
}

static void planes_and_boxes()
{
	char *to = (char *)(m + 100), *from = (char *)(out + 200);
	int *e = out + 100;

	for (int k = 0; k < 32; k++) from[k] = (char)k;
	memset(to, 0, 128);
	planes<<<1, 1>>>(to, from);
	CHECK(cudaDeviceSynchronize());
	same("plane", to[16], 7);
	same("plane", to[18], 9);
	same("beside the plane", to[19], 0);
	memset(to, 0, 128);
	boxes<<<1, 1>>>(to, from, e);
	CHECK(cudaDeviceSynchronize());
	same("box", e[0] | e[1], 0);
	for (int k = 0; k < 128; k++) {
		const int x = k % 8, y = k / 8 % 4, z = k / 32;
		const bool copied = x >= 1 && x < 3 && y >= 1 && z >= 1 && z < 3;

		same("byte of a box", to[k], copied ? 16 * (z - 1) + 4 * (y - 1) + x
			: x < 6 && y < 3 && z < 2 ? 9 : 0);
	}
}

static void grids()
{
	int *e = out + 100;

	memset(m, 0, N * sizeof *m);
	fibonacci<<<1, 1>>>(10, m);
	CHECK(cudaDeviceSynchronize());
	same("fibonacci", m[0], 55);
	again<<<1, 1>>>(m + 1);
	CHECK(cudaDeviceSynchronize());
	same("tails", m[1], 6);
	memset(e, 255, 20 * sizeof *e);
	asks<<<1, 1>>>(m + 10, e);
	CHECK(cudaDeviceSynchronize());
	same("shape", m[15], 39 + 200 + 3000);
	same("no error", e[0], 0);
	same("error", e[1], cudaErrorInvalidConfiguration);
	same("error again", e[2], cudaErrorInvalidConfiguration);
	same("error is over", e[3], 0);
	for (int k = 4; k < 11; k++) same("question", e[k], 0);
	same("no stream", e[11], cudaErrorInvalidResourceHandle);
	same("texts", e[12], 0);
	m[2] = m[3] = 0;
	waits<<<1, 1>>>(m + 2, m + 3);
	CHECK(cudaDeviceSynchronize());
	same("waits for its child", m[3], 1);
	planes_and_boxes();
}

/* to[0] counts the notes, which follow. */
__global__ void note(int *to, int v) { to[1 + atomicAdd(to, 1)] = v; }
__global__ void note_and_launch(int *to, int v, cudaGraphExec_t g, cudaStream_t s, cudaGraphExec_t h, cudaStream_t t)
{
	to[1 + atomicAdd(to, 1)] = v;
	if (g) to[100] = cudaGraphLaunch(g, s);
	if (h) to[101] = cudaGraphLaunch(h, t);
}
__global__ void again_graph(int *to)
{
	cudaGraphExec_t g = cudaGetCurrentGraphExec();

	to[50] = g != NULL;
	if (++*to < 4) to[51] = cudaGraphLaunch(g, cudaStreamGraphTailLaunch);
	else to[52] = cudaGraphLaunch(g, cudaStreamGraphFireAndForget);
}

static cudaGraph_t graph_of(void *func, void **args)
{
	cudaGraph_t g;

	CHECK(cudaGraphCreate(&g, 0));
	kernel(g, func, 1, args);
	return g;
}

static cudaGraphExec_t graph_note(int v, bool upload = true)
{
	void *args[] = { &m, &v };
	return device_graph(graph_of((void *)note, args), upload);
}

static cudaGraphExec_t graph_note_and_launch(int v, cudaGraphExec_t g, cudaStream_t s, cudaGraphExec_t h = NULL,
	cudaStream_t t = NULL)
{
	void *args[] = { &m, &v, &g, &s, &h, &t };
	return device_graph(graph_of((void *)note_and_launch, args));
}

static void notes(cudaGraphExec_t exec, int n, const int *want)
{
	memset(m, 0, 110 * sizeof *m);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	same("notes", m[0], n);
	for (int k = 0; k < n; k++) same("note", m[1 + k], want[k]);
}

static void device_graphs()
{
	const cudaStream_t tail = cudaStreamGraphTailLaunch, fire = cudaStreamGraphFireAndForget;
	void *args[] = { &m }, *to[] = { &out, &out };
	cudaGraphInstantiateParams p = {};
	cudaHostNodeParams host = { [](void *) { }, NULL };
	unsigned long long flags;
	cudaGraphExec_t exec, plain;
	cudaGraph_t g;
	cudaGraphNode_t node;

	/* tails in the order of their launches, those of a tail first; a child before the tail */
	exec = graph_note_and_launch(1, graph_note_and_launch(2, graph_note(3), tail), tail, graph_note(4), tail);
	notes(exec, 4, (const int[]){ 1, 2, 3, 4 });
	notes(exec, 4, (const int[]){ 1, 2, 3, 4 });
	notes(graph_note_and_launch(1, graph_note(2), tail, graph_note(3), fire), 3, (const int[]){ 1, 3, 2 });
	/* itself, as a tail only */
	exec = device_graph(graph_of((void *)again_graph, args));
	memset(m, 0, 110 * sizeof *m);
	m[52] = -1;
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	same("again", m[0], 4);
	same("current", m[50], 1);
	same("as a tail", m[51], 0);
	same("fired", m[52], cudaErrorInvalidValue);
	/* not uploaded; a stream of the host */
	exec = graph_note(2, false);
	notes(graph_note_and_launch(1, exec, fire, graph_note(2), 0), 1, (const int[]){ 1 });
	same("not uploaded", m[100], cudaErrorInvalidValue);
	same("stream", m[101], cudaErrorInvalidValue);
	CHECK(cudaGraphUpload(exec, stream));
	notes(graph_note_and_launch(1, exec, tail), 2, (const int[]){ 1, 2 });
	CHECK(cudaGraphExecGetFlags(exec, &flags));
	same("flags", (int)flags, cudaGraphInstantiateFlagDeviceLaunch);
	/* what cannot be launched by kernels */
	g = graph_of((void *)tells, args);
	CHECK(cudaGraphInstantiate(&plain, g, 0));
	notes(graph_note_and_launch(1, plain, fire), 1, (const int[]){ 1 });
	same("no device graph", m[100], cudaErrorInvalidValue);
	same("both flags", cudaGraphInstantiate(&plain, g, cudaGraphInstantiateFlagDeviceLaunch
		| cudaGraphInstantiateFlagAutoFreeOnLaunch), cudaErrorInvalidValue);
	CHECK(cudaGraphAddHostNode(&node, g, NULL, 0, &host));
	p.flags = cudaGraphInstantiateFlagDeviceLaunch;
	same("host node", cudaGraphInstantiateWithParams(&plain, g, &p), cudaErrorInvalidValue);
	same("result", p.result_out, cudaGraphInstantiateNodeOperationNotSupported);
	same("node", p.errNode_out == node, 1);
	g = graph_of((void *)waits, to);
	same("CDP", cudaGraphInstantiateWithParams(&plain, g, &p), cudaErrorInvalidValue);
	CHECK(cudaGraphCreate(&g, 0));
	same("empty", cudaGraphInstantiateWithParams(&plain, g, &p), cudaErrorInvalidValue);
	same("structure", p.result_out, cudaGraphInstantiateInvalidStructure);
}

static void values()
{
	conditions();
	refused();
	grids();
	device_graphs();
	printf("values: OK\n");
}

/* ---- limits ---- */

__global__ void launches_many(int *n, int *e, int times, bool tails)
{
	while (times--) {
		note<<<1, 1, 0, tails ? cudaStreamTailLaunch : 0>>>(n, times);
		*e += cudaGetLastError() == cudaErrorLaunchOutOfResources;
	}
}

/* Launches g as often into the stream; those that fail are counted in *e. */
__global__ void graphs_many(cudaGraphExec_t g, cudaStream_t s, int times, int *e)
{
	if (!g) g = cudaGetCurrentGraphExec();
	while (times--) *e += cudaGraphLaunch(g, s) != cudaSuccess;
}

static void many_graphs(cudaGraphExec_t g, cudaStream_t s, int times, int failing)
{
	void *args[] = { &g, &s, &times, &out };

	memset(m, 0, 500 * sizeof *m);
	out[0] = 0;
	CHECK(cudaGraphLaunch(device_graph(graph_of((void *)graphs_many, args)), stream));
	CHECK(cudaStreamSynchronize(stream));
	same("graphs that fail", out[0], failing);
}

/* Fires other graphs of its own, one after the other. */
__global__ void fires_in_turn(cudaGraphExec_t *g, int n, int *e)
{
	for (int k = 0; k < n; k++) *e += cudaGraphLaunch(g[k], cudaStreamGraphFireAndForget) != cudaSuccess;
}

static void limits()
{
	enum { GRAPHS = 122 };
	int n = GRAPHS;
	cudaGraphExec_t *all;

	CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 10));
	for (int k = 0; k < 2; k++) {
		memset(m, 0, 100 * sizeof *m);
		out[0] = 0;
		launches_many<<<1, 1>>>(m, out, 12, k == 0);
		CHECK(cudaDeviceSynchronize());
		same("children", m[0], k ? 12 : 10);
		same("children that fail", out[0], k ? 0 : 2);
	}
	many_graphs(graph_note(1), cudaStreamGraphTailLaunch, 257, 2);
	same("tails", m[0], 255);
	CHECK(cudaMallocManaged(&all, GRAPHS * sizeof *all));
	for (int k = 0; k < GRAPHS; k++) all[k] = graph_note(k);
	memset(m, 0, 500 * sizeof *m);
	out[0] = 0;
	void *args[] = { &all, &n, &out };
	const cudaGraphExec_t fires = device_graph(graph_of((void *)fires_in_turn, args));
	for (int k = 1; k <= 2; k++) { /* each launch begins at 0 */
		CHECK(cudaGraphLaunch(fires, stream));
		CHECK(cudaStreamSynchronize(stream));
		same("fired", m[0], 120 * k);
		same("not fired", out[0], 2 * k);
	}
	printf("limits: OK\n");
}
