# happens-before of the host API, and races between operations
LIB_SRC += $(addprefix libconsan/order/, clock.c map.c race.c report.c)
