# Operators, autograd, streams, events, graphs and pinned memory of PyTorch.
# needs: torch
# says: ATen operators ran on the CPU, unchecked
# no kernel
import torch
from torch.nn import functional

torch.manual_seed(0)
a = torch.randn(32, 48, device="cuda", requires_grad=True)
b = torch.randn(48, 16, device="cuda")
torch.testing.assert_close((a @ b).relu().sum().cpu(), (a.cpu() @ b.cpu()).relu().sum())

model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                            torch.nn.Flatten(), torch.nn.Linear(8 * 36, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
images = torch.randn(4, 3, 8, 8, device="cuda")
labels = torch.tensor([1, 2, 3, 4], device="cuda")
losses = []
for step in range(5):
    loss = functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
assert losses[-1] < losses[0]

q = torch.randn(1, 2, 16, 32, device="cuda", dtype=torch.float16, requires_grad=True)
functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
assert q.grad.shape == q.shape

generator = torch.Generator("cuda").manual_seed(3)
first = torch.rand(3, generator=generator, device="cuda")
second = torch.rand(3, generator=generator, device="cuda")
generator.manual_seed(3)
assert torch.equal(first, torch.rand(3, generator=generator, device="cuda"))
assert not torch.equal(first, second)

torch.manual_seed(5)
first = torch.randn(3, device="cuda")
state = torch.cuda.get_rng_state()
second = torch.randn(3, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(second, torch.randn(3, device="cuda")) and not torch.equal(first, second)

total = torch.zeros(8, device="cuda")
value = torch.ones(8, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = value * 2 + 1
    total.add_(result)
assert total.sum().item() == 0
value.fill_(3)
graph.replay()
graph.replay()
assert (result == 7).all() and (total == 14).all()

pinned = torch.ones(4).pin_memory()
assert pinned.is_pinned() and pinned.to("cuda", non_blocking=True).sum().item() == 4
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    total += 1
event = torch.cuda.Event(enable_timing=True)
event.record(stream)
event.synchronize()
assert (total == 15).all()

# fused cells, which ATen has no CPU kernels for
for cell in torch.nn.LSTM, torch.nn.GRU:
    model, data = cell(8, 16, num_layers=2), torch.randn(5, 3, 8)
    twin = cell(8, 16, num_layers=2).cuda()
    twin.load_state_dict(model.state_dict())
    out, twin_out = model(data)[0], twin(data.cuda())[0]
    torch.testing.assert_close(twin_out.cpu(), out)
    out.square().sum().backward()
    twin_out.square().sum().backward()
    for a, b in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(b.grad.cpu(), a.grad)

# sparse tensors
dense = torch.tensor([[0, 1.0, 0], [2, 0, 3]])
for sparse in dense.cuda().to_sparse(), dense.cuda().to_sparse_csr():
    assert torch.equal(sparse.to_dense().cpu(), dense)
    assert torch.equal((sparse @ torch.ones(3, 2, device="cuda")).cpu(), dense @ torch.ones(3, 2))
    twin = sparse.cpu()
    for x in sparse, twin:
        x.mul_(2)
        x.neg_()
    assert torch.equal(sparse.to_dense().cpu(), -2 * dense) and torch.equal(twin.to_dense(), -2 * dense)
a, b = dense.cuda().to_sparse(), torch.eye(3)[:2].to_sparse().cuda()
a.add_(b)  # other elements than before
assert torch.equal(a.to_dense().cpu(), dense + torch.eye(3)[:2]) and a._nnz() == 5
out = torch.zeros(2, 3).to_sparse().cuda()
torch.add(a, b, alpha=-1, out=out)
assert torch.equal(out.to_dense().cpu(), dense)
total = torch.ones(2, 3, device="cuda")
total.add_(b)
assert torch.equal(total.cpu(), 1 + torch.eye(3)[:2])
table = torch.nn.Embedding(10, 4, sparse=True).cuda()
table(torch.tensor([1, 2, 1], device="cuda")).sum().backward()
assert table.weight.grad.coalesce().values().cpu().tolist() == [[2.0] * 4, [1.0] * 4]
