# shadow tables: the last accesses to each byte
LIB_SRC += $(addprefix shadow/, \
	cells.c global.c global_saturated.c global_lanes.c global_log.c global_state.c \
	global_step.c global_logged.c past.c table.c)
