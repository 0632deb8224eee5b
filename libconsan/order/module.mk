# happens-before of the host API, and races between operations
LIB_SRC += $(addprefix libconsan/order/, clock.c inside.c line.c map.c race.c report.c thread.c timeline.c)
