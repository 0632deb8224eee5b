# make install and make deb: into PREFIX; DESTDIR is the root of a package
PREFIX ?= /usr/local
OBJCOPY ?= objcopy
PUBLIC = consan.h err.h err.def tensormap_args.h criterion.h region.h
MAN = $(addprefix $(BUILD)/man/,consan-run.1 consan.1 consan.3)
FILL = sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|'

# Only the names of the public header can be seen: other names would meet those of a program.
$(BUILD)/libconsan.so.0: $(BUILD)/libconsan.a libconsan/install/consan.map
	$(V)$(CC) -shared $(SANFLAGS) -o $@ -Wl,-soname,$(@F) -Wl,--whole-archive $< -Wl,--no-whole-archive \
		-Wl,--version-script=libconsan/install/consan.map \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(LIBS)

# The same for the static library: all objects in one, whose other names are local.
$(BUILD)/static/libconsan.a: $(BUILD)/libconsan.a libconsan/install/module.mk
	@mkdir -p $(@D)
	$(V)$(LD) -r -o $(@D)/consan.o --whole-archive $<
	$(V)$(OBJCOPY) --localize-hidden --wildcard --keep-global-symbol='consan_*' $(@D)/consan.o
	$(V)rm -f $@ && ar rcs $@ $(@D)/consan.o

# The groups of options become subsections; the exit status has a section in consan-run.h2m.
$(BUILD)/man/%.1: libconsan/install/%.h2m $(BUILD)/%
	@mkdir -p $(@D)
	$(V)help2man --no-info --no-discard-stderr --include=$< --version-string='$* $(VERSION)' -o $@ $(BUILD)/$*
	$(V)sed -i -e '/^Exit status: that of/,/^.SH/{/^.SH/!d}' -e '/^\.IP$$/{N;s/^\.IP\n\(.*\):$$/.SS "\1"/}' $@
$(BUILD)/man/consan.3: libconsan/install/man3.awk libconsan/consan.h
	@mkdir -p $(@D)
	$(V)awk -v version=$(VERSION) -f $^ >$@

install: all $(BUILD)/libconsan.so.0 $(BUILD)/static/libconsan.a $(MAN)
	$(V)set -e; to='$(DESTDIR)$(PREFIX)'; \
	install -d "$$to/bin" "$$to/lib/consan" "$$to/lib/pkgconfig" "$$to/lib/cmake/consan" "$$to/include/consan" \
		"$$to/share/man/man1" "$$to/share/man/man3" "$$to/share/bash-completion/completions" \
		"$$to/share/zsh/vendor-completions" "$$to/share/fish/vendor_completions.d" "$$to/share/doc/consan"; \
	install $(BUILD)/consan $(BUILD)/consan-run "$$to/bin"; \
	install -m 644 $(BUILD)/libconsan-cuda.so $(MAKERS_LIB) $(THREADS_LIB) $(GPU_LIB) "$$to/lib/consan"; \
	$(if $(GPU_RESCUE),install $(GPU_RESCUE) "$$to/lib/consan";) \
	for f in $(CUDA_NAMES); do ln -sf libconsan-cuda.so "$$to/lib/consan/$$f"; done; \
	install -d "$$to/lib/consan/python/consan"; \
	for f in $(PYTHON_PARTS); do install -m 644 "libconsan/python/$$f" "$$to/lib/consan/python/$$f"; done; \
	install -m 644 $(BUILD)/static/libconsan.a $(BUILD)/libconsan.so.0 "$$to/lib"; ln -sf libconsan.so.0 "$$to/lib/libconsan.so"; \
	install -m 644 $(PUBLIC:%=libconsan/%) "$$to/include/consan"; \
	$(FILL) libconsan/install/consan.pc.in >"$$to/lib/pkgconfig/consan.pc"; \
	for f in consan-config consan-config-version; do \
		$(FILL) libconsan/install/$$f.cmake.in >"$$to/lib/cmake/consan/$$f.cmake"; \
	done; \
	gzip -9nc $(BUILD)/man/consan-run.1 >"$$to/share/man/man1/consan-run.1.gz"; \
	gzip -9nc $(BUILD)/man/consan.1 >"$$to/share/man/man1/consan.1.gz"; \
	gzip -9nc $(BUILD)/man/consan.3 >"$$to/share/man/man3/consan.3.gz"; \
	for c in consan consan-run; do \
		$(BUILD)/consan completion bash >"$$to/share/bash-completion/completions/$$c"; \
		$(BUILD)/consan completion fish >"$$to/share/fish/vendor_completions.d/$$c.fish"; \
	done; \
	$(BUILD)/consan completion zsh >"$$to/share/zsh/vendor-completions/_consan"; \
	$(BUILD)/consan explain html >"$$to/share/doc/consan/rules.html"; \
	install -m 644 README.md libconsan/DESIGN.md libconsan/doc/*.md LICENSE reports/schema.json "$$to/share/doc/consan"

deb: deps
	$(V)rm -rf $(BUILD)/deb
	$(V)$(MAKE) --no-print-directory -j$(JOBS) install PREFIX=/usr DESTDIR=$(BUILD)/deb
	$(V)strip --strip-unneeded $(BUILD)/deb/usr/bin/* $(BUILD)/deb/usr/lib/libconsan.so.0 $(BUILD)/deb/usr/lib/consan/libconsan-*.so
	$(V)strip -g $(BUILD)/deb/usr/lib/libconsan.a
	$(V)install -d $(BUILD)/deb/DEBIAN && $(FILL) libconsan/install/control.in >$(BUILD)/deb/DEBIAN/control
	$(V)printf 'activate-noawait ldconfig\n' >$(BUILD)/deb/DEBIAN/triggers
	$(V)dpkg-deb --build --root-owner-group $(BUILD)/deb $(BUILD)/consan_$(VERSION)_amd64.deb

$(BUILD)/install/done: $(BUILD)/consan $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so $(GPU_LIB) $(GPU_RESCUE) $(BUILD)/libconsan.so.0 \
		$(BUILD)/static/libconsan.a $(MAN) $(PUBLIC:%=libconsan/%) $(wildcard libconsan/install/* libconsan/doc/*.md) README.md \
		$(PYTHON_PARTS:%=libconsan/python/%)
	$(V)rm -rf $(@D)
	$(V)$(MAKE) --no-print-directory install PREFIX=/usr DESTDIR=$(@D)
	$(V)touch $@

