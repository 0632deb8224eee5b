# PTX to instrumented PTX
LIB_SRC += $(addprefix instrument/rewrite/, \
	calls.c entry.c extents.c hook.c operands.c plan.c regs.c rewrite.c rivals.c \
	statement.c)
