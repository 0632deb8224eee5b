# the options of all commands: one row each in options.def
LIB_SRC += $(addprefix libconsan/options/, \
	argp.c check.c compute_sanitizer.c config.c options.c pattern.c)
