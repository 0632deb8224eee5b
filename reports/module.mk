# findings to text, HTML, JSON, SARIF and JUnit XML
LIB_SRC += $(addprefix reports/, \
	count.c describe.c json.c junit.c markup.c sarif.c source.c stale.c write.c \
	$(addprefix text/, banks.c finding.c page.c report.c) \
	$(addprefix html/, assets.c coverage.c memory.c report.c rules.c side.c timeline.c \
		timeline_layout.c wait_graph.c))

# -MMD does not see .incbin
$(BUILD)/reports/html/assets.o: reports/html/report.css reports/html/report.js
$(BUILD)/reports/html/report.o $(BUILD)/reports/sarif.o: \
	CFLAGS_ALL += -DCONSAN_VERSION='"$(VERSION)"'
