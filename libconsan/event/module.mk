# the event vocabulary, its file format and printer, source sites
LIB_SRC += $(addprefix libconsan/event/, \
	code.c event.c load.c print.c save.c site.c)
