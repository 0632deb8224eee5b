# IR to events on the CPU
LIB_SRC += $(addprefix libconsan/exec/, \
	address.c async.c bar.c builtin.c bulk.c bulk_group.c call.c clc.c cluster.c context.c control.c \
	cpasync.c cvt_rs.c decode.c fence.c follow.c grid.c heap.c layout.c matrix.c mbarrier.c mem.c \
	mem_bytes.c mma.c mma_quads.c module.c multicast.c num.c operand.c queue.c reads.c reads_sync.c regs.c replace.c runtime.c \
	sched.c slot_gap.c sparse.c stasync.c surface_op.c tcgen05.c tcgen05_copy.c tcgen05_event.c tcgen05_mma.c \
	tcgen05_operand.c tcgen05_regs.c tensor_copy.c tensor_reduce.c tensormap.c tensormap_bits.c texture.c texture_op.c tmem.c view.c \
	warp.c wgmma.c wgmma_regs.c wmma.c worker.c)
# lane loops and tile loops: built once for each vector width
SIMD_SRC += $(addprefix libconsan/exec/, \
	atom.c mem_lane.c mma_tile.c multimem.c num_rows.c \
	tcgen05_tile.c wgmma_tile.c ops/arith.c ops/bits.c \
	ops/carry.c ops/cvt.c ops/float.c ops/half.c ops/int.c ops/mov.c ops/pred.c \
	ops/video.c ops/warp.c)
