# the store of the PTX from which machine code was made
LIB_SRC += $(addprefix libconsan/origin/, origin.c pairs.c parts.c)
