# the layout of records, for host and device, and device code; no host code

# The device code is embedded in the library as PTX text.
$(BUILD)/instrument/record/digest_ptx.c: instrument/record/digest.cu instrument/record/digest.h \
		instrument/record/record.h
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -ptx -arch=compute_80 -o $(@:.c=.ptx) $<
	$(V)(echo 'const char consan_digest_ptx[] = {'; od -An -v -tx1 $(@:.c=.ptx) | sed 's/ \(..\)/0x\1,/g'; \
		echo '0};') >$@
$(BUILD)/instrument/record/digest_ptx.o: $(BUILD)/instrument/record/digest_ptx.c
	$(V)$(CC) $(CFLAGS_ALL) -c -o $@ $<
