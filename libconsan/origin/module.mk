# the store of the PTX from which machine code was made
LIB_SRC += libconsan/origin/origin.c
