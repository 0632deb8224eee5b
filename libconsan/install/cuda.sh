#!/bin/sh
# cuda.sh DIR: installs the parts of CUDA that cuda.txt lists into DIR, laid out like
# a toolkit (bin, include, lib64, nvvm). Needs python3 with pip, and uses pip's configuration
# (index, proxy, cache). Does nothing if DIR already holds these versions.
#
# Everything is prepared in DIR.part and renamed at the end, so that DIR is complete or absent.
set -eu
dir=$1
list=$(dirname "$0")/cuda.txt
part=$dir.part

mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9 # another make may be installing it
if cmp -s "$list" "$dir/cuda.txt"; then
	exit 0
fi
if [ "$(uname -sm)" != "Linux x86_64" ]; then
	echo "cuda: $list has packages for Linux on x86-64 only, not for $(uname -sm)" >&2
	exit 1
fi


echo "cuda: installing into $dir from the Python package index (110 MB to fetch, 314 MB on disk):"
sed -n 's/^\(nvidia-[^ ]*\)==\([^ ]*\) .*/cuda:   \1 \2/p' "$list"
rm -rf "$part"
mkdir -p "$part"
trap 'rm -rf "$part"' EXIT
trap 'exit 1' HUP INT TERM

# --target is allowed where the system's Python is "externally managed" (PEP 668).
if ! TMPDIR=$(realpath "$part") PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_ROOT_USER_ACTION=ignore \
	python3 -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
	--only-binary=:all: --require-hashes --requirement "$list" \
	--target "$part/wheels" >"$part/log" 2>&1; then
	{
		tail -n 3 "$part/log" | sed 's/^/cuda:   pip: /'
		echo "cuda: these packages could not be installed. One of these helps:"
		echo "cuda:   a connection to the index, https://pypi.org/simple unless pip has another"
		echo "cuda:   a mirror that has these versions: PIP_INDEX_URL=https://... make deps"
		echo "cuda:   NVIDIA's CUDA Toolkit 13 with nvcc on PATH, or make NVCC=/path/to/nvcc"
	} >&2
	exit 1
fi

home=$part/wheels/nvidia/cu13
mv "$part"/wheels/*.dist-info "$home" # they hold NVIDIA's licence
ln -s lib "$home/lib64"
# The wheels have only libcudart.so.13; the linker looks for libcudart.so.
for name in libcudart libcupti; do
	ln -s "$name.so.13" "$home/lib/$name.so"
done
cp "$list" "$home/cuda.txt"
"$home/bin/nvcc" --version >/dev/null
rm -rf "$dir"
mv "$home" "$dir"
