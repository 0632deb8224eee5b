/* assets: the style and the script of the HTML report, included unchanged. */
#include "reports/html/html.h"

#define ASSET(name, file) \
	__asm__(".section .rodata\n" \
		".global " #name "\n" #name ":\n.incbin \"" file "\"\n" \
		".global " #name "_end\n" #name "_end:\n.byte 0\n.previous\n")

ASSET(report_css, "reports/html/report.css");
ASSET(report_js, "reports/html/report.js");
