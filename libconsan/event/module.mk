# the event vocabulary, its file format and printer, source sites
LIB_SRC += $(addprefix libconsan/event/, \
	code.c event.c load.c print.c relay.c save.c site.c)

# prefetch for writing, and population counts of event words
$(BUILD)/libconsan/event/relay.o: CFLAGS_ALL += -mprfchw -mpopcnt
