"""A test of a kernel by consan's Python bindings, without a GPU or any other package."""
import array

import consan

PTX = """
.version 8.0
.target sm_80
.address_size 64

.visible .entry exchange(.param .u64 p0, .param .u32 p1)
{
	.reg .pred waits;
	.reg .b64 out, step;
	.reg .b32 i, at, other, wait, value;
	.shared .align 4 .b8 tile[256];

	ld.param.u64 out, [p0];
	cvta.to.global.u64 out, out;
	ld.param.u32 wait, [p1];
	setp.ne.u32 waits, wait, 0;
	mov.u32 i, %tid.x;
	mov.u32 at, tile;
	mad.lo.u32 at, i, 4, at;
	st.shared.u32 [at], i;
	@!waits bra read;
	bar.sync 0;
read:
	xor.b32 other, i, 32;
	mov.u32 at, tile;
	mad.lo.u32 at, other, 4, at;
	ld.shared.u32 value, [at];
	mul.wide.u32 step, i, 4;
	add.s64 out, out, step;
	st.global.u32 [out], value;
	ret;
}
"""


def exchange(wait):
    out = array.array("I", [0] * 64)
    with consan.session() as s:
        kernel = s.load(PTX, "exchange.ptx").kernel("exchange")
        assert s.launch(kernel, block=64, args=[out, wait]) == "ok"
    assert not s.unchecked
    return out, s


out, with_barrier = exchange(1)
assert list(out) == [i ^ 32 for i in range(64)]
assert not with_barrier.findings, with_barrier.findings[0]

_, without = exchange(0)
assert "CS102" in {f.rule for f in without.errors}
print(without.errors[0])
