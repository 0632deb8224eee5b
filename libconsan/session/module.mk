# wires the stages together: sessions, launches, exploration, replay, GPU sessions
LIB_SRC += $(addprefix libconsan/session/, \
	attempt.c calls.c candidate.c consan.c copy.c explore.c explore_order.c search.c fallback.c findings.c flow.c gpu.c gpu_maps.c \
	gpu_module.c gpu_auto.c gpu_emulate.c gpu_emulate_screen.c gpu_hidden.c gpu_replay.c gpu_screen.c gpu_together.c host.c host_stack.c library.c load.c met.c \
	missing_wait.c nvtx.c operations.c patch.c place.c python_stack.c \
	repair.c replay.c \
	devices.c session.c this_run.c \
	trial.c view.c)
