# findings to text, HTML, JSON, SARIF, JUnit XML, GitHub annotations and Perfetto traces
LIB_SRC += $(addprefix reports/, \
	count.c describe.c finding_text.c github.c json.c junit.c markup.c perfetto.c protobuf.c sarif.c sarif_place.c \
	sarif_rule.c source.c stale.c steps.c waits.c write.c \
	$(addprefix text/, banks.c finding.c page.c report.c) \
	$(addprefix html/, assets.c coverage.c drawing.c edit.c finding.c memory.c report.c rules.c side.c streams.c timeline.c \
		tensor_memory.c timeline_layout.c wait_graph.c))

# -MMD does not see .incbin
$(BUILD)/reports/html/assets.o: $(wildcard reports/html/*.css reports/html/*.js)
$(BUILD)/reports/html/report.o $(BUILD)/reports/sarif.o: \
	CFLAGS_ALL += -DCONSAN_VERSION='"$(VERSION)"'
