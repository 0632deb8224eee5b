# PTX text to IR, fatbins, descriptor and operand rules
LIB_SRC += $(addprefix libconsan/ptx/, \
	body.c cfg.c constant.c cubin.c decl.c fatbin.c flag.c init.c lex.c link.c loaded.c loc.c operand.c \
	order.c parse.c print.c ptx_site.c readers.c refuse.c scope.c table.c tc_book.c tc_desc.c tc_op.c tc_shape.c \
	tmem_form.c tmem_regs.c unread.c verify.c wg_desc.c wgmma_regs.c wmma.c)
