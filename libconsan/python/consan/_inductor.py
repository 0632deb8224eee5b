"""torch.compile's choice between configurations runs each once, as Triton's (consan._triton)."""
import time

import torch._inductor.runtime.benchmarking as benchmarking


def _once(self, fn, *args, **kwargs):
    start = time.perf_counter()
    fn()
    return (time.perf_counter() - start) * 1e3


for _class in vars(benchmarking).values():
    if isinstance(_class, type) and "benchmark_gpu" in vars(_class):
        _class.benchmark_gpu = _once
