/* assets: the styles and scripts of the HTML report, included unchanged. */
#include "reports/html/html.h"

#define ASSET(name, file) \
	__asm__(".section .rodata\n" \
		".global " #name "\n" #name ":\n.incbin \"" file "\"\n" \
		".global " #name "_end\n" #name "_end:\n.byte 0\n.previous\n")

ASSET(page_css, "reports/html/page.css");
ASSET(drawings_css, "reports/html/drawings.css");
ASSET(findings_js, "reports/html/findings.js");
ASSET(timeline_js, "reports/html/timeline.js");
