# torch.compile and FlexAttention make Triton kernels.
# needs: torch triton
# kernel: triton_tem_fused
import torch
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention

torch.manual_seed(0)


@torch.compile
def layer(x, w):
    return functional.gelu(x @ w).softmax(-1).sum(0)


x = torch.randn(32, 64, device="cuda")
w = torch.randn(64, 48, device="cuda")
torch.testing.assert_close(layer(x, w).cpu(), functional.gelu(x.cpu() @ w.cpu()).softmax(-1).sum(0))


def causal(score, batch, head, i, j):
    return torch.where(i >= j, score, -float("inf"))


q, k, v = (torch.randn(1, 2, 128, 32, device="cuda") for _ in range(3))
out = torch.compile(flex_attention)(q, k, v, score_mod=causal)
expected = functional.scaled_dot_product_attention(q.cpu(), k.cpu(), v.cpu(), is_causal=True)
torch.testing.assert_close(out.cpu(), expected, atol=1e-2, rtol=1e-2)
