/* Tests of exec: the accesses of texture and surface instructions, queries of objects, what happens
 * outside a surface, and what is refused. What fetches return: tests/cuda/textures.cu. */
#include "libconsan/base/base.h"
#include "libconsan/exec/exec.h"
#include "libconsan/ptx/ptx.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { W = 8, H = 4, MOST = 16 };
static float texels[H][W];

/* p: handles of a texture and of a surface of it, and an array of results of 64 words. */
#define KERNEL(globals, statement) \
	".version 9.0\n.target sm_90a\n.address_size 64\n" globals \
	".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2)\n{\n" \
	".reg .b64 t, s, o;\n.reg .b32 i, v, v1, v2;\n.reg .f32 f<4>;\n.reg .pred p, q;\n" \
	"ld.param.u64 t, [p0];\nld.param.u64 s, [p1];\nld.param.u64 o, [p2];\nmov.u32 i, %tid.x;\n" \
	statement "\nret;\n}\n"

struct seen {
	struct event_sink sink;
	unsigned n;
	struct { uint64_t at; uint32_t bytes, lanes; enum ev_mode mode; unsigned flags; } access[MOST];
};

static void on_event(struct event_sink *sink, const struct event *e)
{
	struct seen *s = (struct seen *)sink;
	const unsigned first = (unsigned)__builtin_ctz(e->lanes ? e->lanes : 1);

	if (e->kind != EV_ACCESS || s->n == MOST)
		return;
	s->access[s->n].at = e->access.at.lane ? e->access.at.lane[first]
		: e->access.at.base + (uint64_t)((int64_t)e->access.at.stride * first);
	s->access[s->n].bytes = e->access.bytes;
	s->access[s->n].lanes = e->lanes;
	s->access[s->n].mode = e->access.mode;
	s->access[s->n++].flags = e->access.flags;
}

static struct event_sink *begin(void *user, const struct cluster_info *c)
{
	(void)c;
	return user;
}

static struct exec_result run(const char *text, unsigned threads, bool linear, uint32_t out[64],
	struct seen *seen)
{
	struct consan_texture t = { .level = { { (uintptr_t)texels, sizeof texels[0], sizeof texels } }, .width = W, .height = H, .format = CONSAN_TEXEL_F32, .channels = 1,
		.address = { CONSAN_ADDRESS_CLAMP, CONSAN_ADDRESS_CLAMP }, .linear = linear };
	struct exec_observer o = { .user = seen, .cluster_begin = begin };
	struct consan_err e = { 0 };
	struct ptx_module *p = ptx_parse("test.ptx", text, strlen(text), &e);
	struct exec_module *module = p ? exec_load(p, &e) : NULL;
	uint64_t param[3] = { exec_texture_add(&t), 0, (uintptr_t)out };
	struct exec_launch l = { .device = exec_device_for(90), .grid = { 1, 1, 1 },
		.block = { threads, 1, 1 }, .cluster = { 1, 1, 1 }, .params = param, .jobs = 1,
		.timeout = 20, .observer = &o };
	struct exec_result r;

	cr_assert(module, "line %d: %s", e.line, e.text);
	t.surface = true;
	param[1] = exec_texture_add(&t);
	*seen = (struct seen){ .sink = { .event = on_event, .want_global = true } };
	for (unsigned i = 0; i < W * H; i++)
		texels[i / W][i % W] = (float)i;
	exec_mem_add(texels, sizeof texels, MEM_DEVICE, false);
	exec_mem_add(out, 64 * 4, MEM_DEVICE, false);
	l.kernel = exec_kernel(module, "k", &e);
	exec_run(&l, &r);
	exec_mem_remove(texels);
	exec_mem_remove(out);
	cr_assert(exec_texture_remove(param[0]) && exec_texture_remove(param[1]));
	cr_assert(!exec_texture_remove(param[0]));
	exec_unload(module);
	return r;
}

Test(texture, accesses)
{
	static uint32_t out[64];
	struct seen s;

	run(KERNEL("", "tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [t, {0f40200000, 0f3fc00000}];"), 1, true, out, &s);
	cr_assert_eq(s.n, 1, "at (2.5, 1.5) one texel has all the weight, %u accesses", s.n);
	cr_assert_eq(s.access[0].at, (uintptr_t)&texels[1][2]);
	cr_assert(s.access[0].bytes == 4 && s.access[0].mode == MODE_READ
		&& s.access[0].flags == ACCESS_NONCOHERENT);
	run(KERNEL("", "tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [t, {0f40400000, 0f40000000}];"), 1, true, out, &s);
	cr_assert_eq(s.n, 4, "at (3, 2) four texels have equal weights");
	cr_assert(s.access[0].at == (uintptr_t)&texels[1][2] && s.access[3].at == (uintptr_t)&texels[2][3]);
	run(KERNEL("", "tld4.r.2d.v4.f32.f32 {f0, f1, f2, f3}, [t, {0f40400000, 0f40000000}];"), 1, false, out,
		&s);
	cr_assert(s.n == 4 && s.access[0].at == (uintptr_t)&texels[2][2]
		&& s.access[3].at == (uintptr_t)&texels[1][2]);
	run(KERNEL("", "mov.u32 v, 5;\nshl.b32 i, i, 2;\nsust.b.2d.b32.zero [s, {i, 3}], {v};"), 32, false, out,
		&s);
	cr_assert(s.n == 1 && s.access[0].mode == MODE_WRITE && s.access[0].lanes == 0xff
		&& s.access[0].at == (uintptr_t)texels[3], "lanes outside the surface access nothing");
}

Test(texture, queries)
{
	static uint32_t out[64];
	struct seen s;
	const struct exec_result r = run(KERNEL("",
		"txq.width.b32 v, [t];\nst.global.u32 [o], v;\ntxq.height.b32 v, [t];\nst.global.u32 [o+4], v;\n"
		"suq.width.b32 v, [s];\nst.global.u32 [o+8], v;\n"
		"txq.num_mipmap_levels.b32 v, [t];\nst.global.u32 [o+24], v;\n"
		"txq.level.width.b32 v, [t], 1;\nst.global.u32 [o+28], v;\n"
		"istypep.texref p, t;\nselp.u32 v, 1, 0, p;\nst.global.u32 [o+12], v;\n"
		"istypep.surfref p, t;\nselp.u32 v, 1, 0, p;\nst.global.u32 [o+16], v;\n"
		"istypep.surfref p, s;\nselp.u32 v, 1, 0, p;\nst.global.u32 [o+20], v;"), 1, false, out, &s);

	cr_assert_eq(r.status, EXEC_OK, "%s", r.err.text);
	cr_assert(out[0] == W && out[1] == H && out[2] == W);
	cr_assert(out[3] == 1 && out[4] == 0 && out[5] == 1);
	cr_assert(out[6] == 1 && out[7] == 0, "there is no level 1");
}

/* .zero: 0 is read; .clamp: the nearest element; .trap: a fault. */
Test(texture, outside_a_surface)
{
	static uint32_t out[64];
	struct exec_result r;
	struct seen s;
	float f;

	r = run(KERNEL("", "suld.b.2d.b32.zero {v}, [s, {32, 1}];\nst.global.u32 [o], v;\n"
		"suld.b.2d.b32.clamp {v}, [s, {64, 9}];\nst.global.u32 [o+4], v;\n"
		"suld.b.2d.v2.b32.clamp {v1, v2}, [s, {-8, 1}];\nst.global.u32 [o+8], v2;"), 1, false, out, &s);
	cr_assert_eq(r.status, EXEC_OK, "%s", r.err.text);
	cr_assert_eq(out[0], 0);
	memcpy(&f, &out[1], 4);
	cr_assert_eq(f, W * H - 1);
	memcpy(&f, &out[2], 4);
	cr_assert_eq(f, W + 1);
	r = run(KERNEL("", "suld.b.2d.b32.trap {v}, [s, {32, 1}];"), 1, false, out, &s);
	cr_assert(r.status == EXEC_FAULT && r.fault == FAULT_GLOBAL_OOB);
	r = run(KERNEL("", "suld.b.2d.b32.trap {v}, [s, {2, 1}];"), 1, false, out, &s);
	cr_assert(r.status == EXEC_FAULT && r.fault == FAULT_MISALIGNED);
	r = run(KERNEL("", "suld.b.2d.b32.trap {v}, [t, {0, 1}];"), 1, false, out, &s);
	cr_assert(r.status == EXEC_FAULT && r.fault == FAULT_TEXTURE);
}

/* Offsets count texels, also of tld4; PTX ISA, tex. */
Test(texture, offsets)
{
	static uint32_t out[64];
	struct seen s;

	run(KERNEL("", "tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [t, {0f40200000, 0f3fc00000}], {1, -1};"), 1, false,
		out, &s);
	cr_assert(s.n == 1 && s.access[0].at == (uintptr_t)&texels[0][3]);
	run(KERNEL("", "tex.level.2d.v4.f32.s32 {f0, f1, f2, f3}, [t, {2, 2}], 0, {-1, 1};"), 1, false, out, &s);
	cr_assert(s.n == 1 && s.access[0].at == (uintptr_t)&texels[3][1]);
	run(KERNEL("", "tld4.r.2d.v4.f32.f32 {f0, f1, f2, f3}, [t, {0f40400000, 0f40000000}], {2, -1};"), 1, false,
		out, &s);
	cr_assert(s.n == 4 && s.access[0].at == (uintptr_t)&texels[1][4]
		&& s.access[3].at == (uintptr_t)&texels[0][4]);
}

/* A reduction is one access of all lanes, relaxed at the scope of the device; a formatted store counts
 * texels. */
Test(texture, reductions_and_formatted_stores)
{
	static uint32_t out[64];
	struct exec_result r;
	struct seen s;
	float f;

	r = run(KERNEL("", "sured.b.or.2d.b32.trap [s, {8, 1}], i;\n"), 32, false, out, &s);
	cr_assert_eq(r.status, EXEC_OK, "%s", r.err.text);
	cr_assert(s.n == 1 && s.access[0].mode == MODE_RMW && s.access[0].lanes == UINT32_MAX
		&& s.access[0].flags == ACCESS_REDUCTION && s.access[0].at == (uintptr_t)&texels[1][2]);
	f = W + 2;
	memcpy(&out[0], &f, 4);
	memcpy(&out[1], &texels[1][2], 4);
	cr_assert_eq(out[1], out[0] | 31);
	r = run(KERNEL("", "mov.u32 v, 0f3fc00000;\nsust.p.2d.b32.clamp [s, {99, 2}], {v};"), 1, false, out, &s);
	cr_assert_eq(r.status, EXEC_OK, "%s", r.err.text);
	cr_assert(s.n == 1 && s.access[0].mode == MODE_WRITE && s.access[0].at == (uintptr_t)&texels[2][W - 1]
		&& texels[2][W - 1] == 1.5f);
}

Test(texture, refused)
{
	static const struct { const char *text, *why; } bad[] = {
		{ KERNEL("", "tex.3d.v4.f32.f32 {f0, f1, f2, f3}, [t, {f0, f0, f0, f0}];"), "other dimensions" },
		{ KERNEL("", "tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [t, {f0, f0}], f0;"), "depth textures" },
		{ KERNEL("", "tld4.r.a2d.v4.f32.f32 {f0, f1, f2, f3}, [t, {i, f0, f0, f0}];"), "two dimensions" },
		{ KERNEL("", "sured.b.and.2d.u32.trap [s, {i, i}], v;"), "reduction of this type" },
		{ KERNEL("", "sured.p.add.2d.b32.trap [s, {i, i}], v;"), "no integers of 32 bits" },
		{ KERNEL("", "txq.filter_mode.b32 v, [t];"), "no numbers" },
		{ KERNEL("", "txq.channel_order.b32 v, [t];"), "no enumeration" },
		{ KERNEL(".global .texref image;\n",
			"tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [image, {f0, f0}];"), ".texref" },
	};
	static uint32_t out[64];
	struct seen s;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct exec_result r = run(bad[i].text, 1, false, out, &s);

		cr_assert_eq(r.status, EXEC_UNSUPPORTED, "%zu: %d", i, (int)r.status);
		cr_assert(strstr(r.err.text, bad[i].why), "%zu: %s", i, r.err.text);
	}
}
