# the options of every command, one row each in options.def
LIB_SRC += $(addprefix libconsan/options/, \
	options.c)
