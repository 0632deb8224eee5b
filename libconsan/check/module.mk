# events to findings
LIB_SRC += $(addprefix libconsan/check/, \
	access.c accesses.c acquire.c async.c barrier.c beside.c cancel.c check.c clock.c cluster.c fence.c fence_sc.c foreign.c \
	global.c global_pending.c global_race.c global_report.c global_sync.c grids.c hang.c host.c invalid.c location.c mbar.c met.c \
	mbar_check.c order.c pairs.c profile.c race.c repeat.c race_report.c release.c report.c stored.c tcgen05.c need.c \
	tensormap.c tmem.c tmem_alloc.c tmem_report.c volatile.c wgmma.c)
