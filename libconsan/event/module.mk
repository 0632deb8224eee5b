# the event vocabulary, its file format and printer, source sites
LIB_SRC += $(addprefix libconsan/event/, \
	code.c event.c fields.c launch_info.c load.c print.c queue.c save.c site.c valid.c)
