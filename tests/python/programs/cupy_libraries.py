# cuBLAS, cuFFT and cuRAND, which come with PyTorch: libraries of the CPU do the work.
# needs: cupy torch
# kernel: cupy_copy
# says: library calls ran on the CPU, unchecked
import cupy
import numpy

x = cupy.asarray(numpy.random.default_rng(1).random((3, 8, 10)))
for dtype in "efdFD":
    a = x.astype(dtype)
    numpy.testing.assert_allclose(cupy.matmul(a, a.transpose(0, 2, 1)).get().astype("D"),
                                  numpy.matmul(x.get(), x.get().transpose(0, 2, 1)), rtol=2e-2)
numpy.testing.assert_allclose((x[0] @ x[1].T).get(), x[0].get() @ x[1].get().T)
numpy.testing.assert_allclose(cupy.dot(x[0, 0], x[0, 1]).get(), x[0, 0].get() @ x[0, 1].get())
for name in "fft", "ifft", "rfft", "fft2", "rfft2", "fftn", "rfftn":
    for axis in {} if name[-1] in "2n" else {"axis": 0}, {}:
        numpy.testing.assert_allclose(getattr(cupy.fft, name)(x, **axis).get(),
                                      getattr(numpy.fft, name)(x.get(), **axis), atol=1e-12)
numpy.testing.assert_allclose(cupy.fft.irfftn(cupy.fft.rfftn(x)).get(), x.get())

# the sequence of an H200
curand = cupy.cuda.curand
generator = curand.createGenerator(curand.CURAND_RNG_PSEUDO_XORWOW)
curand.setPseudoRandomGeneratorSeed(generator, 1234)
words = cupy.empty(65538, "u4")
curand.generate(generator, words.data.ptr, words.size)
assert [int(words[i]) for i in (0, 1, 2, 4096, 65537)] == [
    0x253d5e15, 0xd1f7605a, 0x8ce6f6f8, 0x6f558604, 0x57bbdb70]
# the known answer of Philox4x32-10 for counter 0 and key 0, from Random123; the next four numbers are those
# of another subsequence
generator = curand.createGenerator(curand.CURAND_RNG_PSEUDO_PHILOX4_32_10)
curand.setPseudoRandomGeneratorSeed(generator, 0)
curand.generate(generator, words.data.ptr, words.size)
assert [int(words[i]) for i in range(5)] == [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0x844515e1]
