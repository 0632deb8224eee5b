# records of a GPU to events
LIB_SRC += $(addprefix instrument/decode/, \
	access.c barriers.c bulk.c cancel.c decode.c drain.c drain_end.c drain_kept.c \
	gather.c global.c hang.c identical.c jobs.c maps.c mbarrier.c merge.c refusals.c \
	screen.c sites.c sync.c tcgen05.c together.c values.c wgmma.c)
