# events to findings
LIB_SRC += $(addprefix libconsan/check/, \
	access.c async.c barrier.c check.c clock.c cluster.c foreign.c global.c \
	global_race.c global_report.c global_sync.c grids.c hang.c mbar.c order.c race.c \
	report.c tensormap.c wgmma.c)
