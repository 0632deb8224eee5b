# The bundled CUDA programs, which do not depend on consan. Each contains code for a GPU, sm_90a
# or sm_100a, and its PTX for consan.
KERNELS = kernels/hgemm/hgemm kernels/ring/ring kernels/wgmma_gemm/wgmma_gemm \
	kernels/attention/fa2_split_q \
	kernels/attention/fa2_split_kv kernels/attention/fa2_shared_kv \
	kernels/attention/fa2_shared_qkv kernels/attention/fa2_tiling_qk kernels/mlp/fused_mlp \
	kernels/attention/hopper kernels/attention/mesh_kv kernels/attention/mesh_mlo \
	kernels/fallback/fallback kernels/tcgen05_gemm/tcgen05_gemm \
	kernels/tcgen05_gemm/scaled_gemm kernels/tcgen05_gemm/clc_gemm \
	kernels/attention/blackwell kernels/allreduce/allreduce \
	kernels/pipeline/pipeline kernels/distributed/gather_gemm \
	kernels/distributed/ring_attention

kernels: $(KERNELS:%=$(BUILD)/%)

$(BUILD)/kernels/tcgen05_gemm/% $(BUILD)/kernels/attention/blackwell: NVCCFLAGS := $(subst 90a,100a,$(NVCCFLAGS))
$(BUILD)/kernels/%: kernels/%.cu $(wildcard kernels/*/*.cuh kernels/*/*.h)
	@mkdir -p $(@D)
	$(V)$(NVCC) $(NVCCFLAGS) -o $@ $< 2>$@.log || { cat $@.log; rm -f $@; exit 1; }
