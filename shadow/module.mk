# shadow tables: the last accesses to each byte
LIB_SRC += $(addprefix shadow/, \
	cells.c global.c global_each.c global_lanes.c global_layout.c global_log.c global_logged.c \
	global_saturated.c global_spans.c global_state.c global_step.c lists.c past.c plain.c table.c)
