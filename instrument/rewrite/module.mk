# PTX to instrumented PTX
LIB_SRC += $(addprefix instrument/rewrite/, \
	calls.c chunk.c conflict.c entry.c external.c group.c heap.c hook.c inflight.c operands.c plan.c \
	plan_bulk.c plan_tensor.c rewrite.c slice.c statement.c ticket.c together.c wgmma_regs.c)
