# findings to text, HTML, JSON, SARIF and JUnit XML
LIB_SRC += $(addprefix reports/, \
	assets.c banks.c coverage.c covered.c html.c json.c junit.c markup.c memory.c page.c \
	rules.c sarif.c side.c source.c text.c timeline.c waits.c words.c write.c)

# -MMD does not see .incbin
$(BUILD)/reports/assets.o: reports/report.css reports/report.js
$(BUILD)/reports/html.o $(BUILD)/reports/sarif.o: CFLAGS_ALL += -DCONSAN_VERSION='"$(VERSION)"'
