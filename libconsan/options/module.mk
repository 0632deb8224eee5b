# the options of all commands: one row each in options.def
LIB_SRC += $(addprefix libconsan/options/, \
	options.c)
