# the layout of records, for host and device, and device code; no host code

# The device code is embedded in the library as PTX text.
$(BUILD)/instrument/record/%_ptx.c: instrument/record/%.cu $(wildcard instrument/record/*.h)
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -ptx -arch=compute_80 -o $(@:.c=.ptx) $<
	$(V)(echo 'const char consan_$*_ptx[] = {'; od -An -v -tx1 $(@:.c=.ptx) | sed 's/ \(..\)/0x\1,/g'; \
		echo '0};') >$@
$(BUILD)/instrument/record/%_ptx.o: $(BUILD)/instrument/record/%_ptx.c
	$(V)$(CC) $(CFLAGS_ALL) -c -o $@ $<
.PRECIOUS: $(BUILD)/instrument/record/%_ptx.c
