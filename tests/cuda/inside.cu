// Operations that are part of others: conditional nodes of graphs, and grids and graphs that kernels launch.
//   inside CASE racy|fixed    pairs; the second argument of CASE is the rule of the racy form, and the
//                             fixed form has no finding
//   inside values             compares what nodes and grids do with what they should
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { N = 256 };
#define CHECK(call) do { cudaError_t e_ = (call); if (e_) { \
	printf("line %d: %s\n", __LINE__, cudaGetErrorName(e_)); exit(1); } } while (0)

static bool fixed;
static int *m, *out;

/* ---- kernels ---- */

__global__ void set(int *a, int v) { a[threadIdx.x] = v; }
__global__ void add(int *a, int v) { a[threadIdx.x] += v; }
__global__ void copy(const int *a, int *b) { b[threadIdx.x] = a[N - 1 - threadIdx.x]; }
__global__ void condition(cudaGraphConditionalHandle h, unsigned v) { cudaGraphSetConditional(h, v); }
__global__ void by_thread(cudaGraphConditionalHandle h)
{
	if (threadIdx.x % 32 == 0) cudaGraphSetConditional(h, threadIdx.x);
}
__global__ void count_down(cudaGraphConditionalHandle h, int *n) { cudaGraphSetConditional(h, --*n != 0); }

/* ---- conditional nodes ---- */

static cudaGraph_t graph;
static cudaStream_t stream;

static cudaGraphNode_t conditional(cudaGraph_t in, cudaGraphConditionalHandle h, cudaGraphConditionalNodeType type,
	unsigned size, const cudaGraphNode_t *after, cudaGraph_t *body)
{
	cudaGraphNodeParams p = { cudaGraphNodeTypeConditional };
	cudaGraphNode_t node;

	p.conditional.handle = h;
	p.conditional.type = type;
	p.conditional.size = size;
	CHECK(cudaGraphAddNode(&node, in, after, NULL, after != NULL, &p));
	for (unsigned k = 0; k < size; k++) body[k] = p.conditional.phGraph_out[k];
	return node;
}

static cudaGraphNode_t kernel(cudaGraph_t in, void *func, unsigned threads, void **args,
	const cudaGraphNode_t *after = NULL)
{
	cudaKernelNodeParams p = { func, dim3(1), dim3(threads), 0, args, NULL };
	cudaGraphNode_t node;

	CHECK(cudaGraphAddKernelNode(&node, in, after, after != NULL, &p));
	return node;
}

static cudaGraphNode_t kernel_set(cudaGraph_t in, int *a, int v, const cudaGraphNode_t *after = NULL)
{
	void *args[] = { &a, &v };
	return kernel(in, (void *)set, N, args, after);
}

static cudaGraphNode_t kernel_add(cudaGraph_t in, int *a, int v, const cudaGraphNode_t *after = NULL)
{
	void *args[] = { &a, &v };
	return kernel(in, (void *)add, N, args, after);
}

static cudaGraphNode_t kernel_condition(cudaGraph_t in, cudaGraphConditionalHandle h, unsigned v,
	const cudaGraphNode_t *after = NULL)
{
	void *args[] = { &h, &v };
	return kernel(in, (void *)condition, 1, args, after);
}

static cudaGraphConditionalHandle handle(unsigned start, unsigned flags = cudaGraphCondAssignDefault)
{
	cudaGraphConditionalHandle h;

	CHECK(cudaGraphConditionalHandleCreate(&h, graph, start, flags));
	return h;
}

static void launch(int times = 1)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	while (times--) CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaStreamSynchronize(stream));
}

/* ---- the pairs ---- */

#define CASE(name, rule) static void name()

// the node reads what a kernel sets that it does not wait for
CASE(condition_read, CS1002)
{
	cudaGraphConditionalHandle h = handle(0);
	cudaGraphNode_t k = kernel_condition(graph, h, 1);
	cudaGraph_t body;

	conditional(graph, h, cudaGraphCondTypeIf, 1, fixed ? &k : NULL, &body);
	kernel_set(body, m, 1);
	launch();
}

// two nodes set one condition
CASE(condition_set, CS1001)
{
	cudaGraphConditionalHandle h = handle(0);
	cudaGraphNode_t k = kernel_condition(graph, h, 1), l = kernel_condition(graph, h, 2, fixed ? &k : NULL);
	cudaGraph_t body;

	conditional(graph, h, cudaGraphCondTypeIf, 1, &l, &body);
	launch();
}

// "It is undefined behavior to have racing / possibly concurrent calls to cudaGraphSetConditional"
CASE(condition_threads, CS101)
{
	cudaGraphConditionalHandle h = handle(0);
	void *args[] = { &h };
	cudaGraphNode_t k = kernel(graph, (void *)by_thread, fixed ? 32 : 64, args);
	cudaGraph_t body;

	conditional(graph, h, cudaGraphCondTypeIf, 1, &k, &body);
	launch();
}

// two branches in one body
CASE(body_branches, CS1001)
{
	cudaGraph_t body;

	conditional(graph, handle(1), cudaGraphCondTypeIf, 1, NULL, &body);
	cudaGraphNode_t k = kernel_set(body, m, 1);
	kernel_set(body, m, 2, fixed ? &k : NULL);
	launch();
}

// a body, and a node that does not wait for the conditional one
CASE(body_beside, CS1002)
{
	cudaGraph_t body;
	cudaGraphNode_t node = conditional(graph, handle(1), cudaGraphCondTypeIf, 1, NULL, &body);
	void *args[] = { &m, &out };

	kernel_set(body, m, 1);
	kernel(graph, (void *)copy, N, args, fixed ? &node : NULL);
	launch();
}

// the bodies of two nested nodes, and of their sibling
CASE(body_nested, CS1001)
{
	cudaGraph_t body, inner, other;

	conditional(graph, handle(1), cudaGraphCondTypeIf, 1, NULL, &body);
	cudaGraphNode_t node = conditional(body, handle(0), cudaGraphCondTypeSwitch, 1, NULL, &inner);
	kernel_set(inner, m, 1);
	conditional(body, handle(1), cudaGraphCondTypeIf, 1, fixed ? &node : NULL, &other);
	kernel_set(other, m, 2);
	launch();
}

// a body, and another stream
CASE(body_stream, CS1002)
{
	cudaGraph_t body;
	cudaGraphExec_t exec;
	cudaStream_t t;

	conditional(graph, handle(1), cudaGraphCondTypeIf, 1, NULL, &body);
	kernel_set(body, m, 1);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	CHECK(cudaGraphLaunch(exec, stream));
	copy<<<1, N, 0, fixed ? stream : t>>>(m, out);
	CHECK(cudaDeviceSynchronize());
}

#include "inside_launched.cuh"
#include "inside_values.cuh"

static const struct { const char *name; void (*run)(); } cases[] = {
#define C(name) { #name, name }
	C(condition_read), C(condition_set), C(condition_threads), C(body_branches), C(body_beside), C(body_nested),
	C(body_stream), C(parent_later), C(parent_joins), C(block_writes), C(last_block), C(child_streams),
	C(child_blocks), C(child_event), C(fire_and_forget), C(tail_launch), C(grandchild), C(child_copy),
	C(child_fill), C(child_copy_box), C(child_fill_box), C(child_reads_box), C(host_stream), C(host_reads), C(graph_fired), C(graph_parent), C(graph_two),
	C(graph_sibling), C(graph_stream), C(graph_sibling_stream), C(graph_tail_stream), C(graph_nodes), C(values), C(limits),
};

int main(int argc, char **argv)
{
	if (argc < 2) return 2;
	fixed = argc > 2 && !strcmp(argv[2], "fixed");
	CHECK(cudaMallocManaged(&m, 8 * N * sizeof *m));
	CHECK(cudaMallocManaged(&out, 8 * N * sizeof *out));
	memset(m, 0, 8 * N * sizeof *m);
	memset(out, 0, 8 * N * sizeof *out);
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaGraphCreate(&graph, 0));
	for (auto &c : cases)
		if (!strcmp(c.name, argv[1])) {
			c.run();
			CHECK(cudaDeviceSynchronize());
			return 0;
		}
	return 2;
}
