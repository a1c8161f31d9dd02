#!/bin/sh
# Gathers what `make test-gpu` and benchmarks/gpu.py need on a machine without a network.
#
#   benchmarks/gpu_kit.sh FOLDER [PYTHON]     PYTHON: the machine's version, 3.12 by default
#
# The machine has Python with JAX and its CUDA plugin, PyTorch and their libraries (gigabytes, which are not gathered).
# The folder gets the package, its tests and benchmarks as one archive, and the wheels that such a machine lacks;
# `sh FOLDER/setup.sh` there unpacks them into /tmp/kit, without installing anything. Sizes are printed.
set -eu
folder=$1
python=${2:-3.12}
cd "$(dirname "$0")/.."
mkdir -p "$folder/wheels"
folder=$(cd "$folder" && pwd)
tar -czf "$folder/source.tar.gz" --exclude=__pycache__ --exclude=tests/fuzz/corpus \
    estimatorkit tests benchmarks pyproject.toml setup.cfg setup.py Makefile README.md
platforms=""
for platform in manylinux_2_28 manylinux_2_27 manylinux_2_17 manylinux2014 manylinux1; do
    platforms="$platforms --platform ${platform}_x86_64"
done
# shellcheck disable=SC2086
"${PIP_PYTHON:-python3}" -m pip download --quiet --no-deps --only-binary=:all: --python-version "$python" \
    --implementation cp $platforms --dest "$folder/wheels" \
    absl-py annotated-types filelock flatbuffers google-crc32c hypothesis iniconfig packaging pillow pluggy protobuf \
    pydantic pygments pytest safetensors sortedcontainers tensorboard threadpoolctl tqdm typing-extensions typing-inspection
"${PIP_PYTHON:-python3}" -m pip download --quiet --no-deps --only-binary=:all: --python-version "$python" \
    --implementation cp $platforms --dest "$folder/wheels" \
    "$(unzip -p "$folder"/wheels/pydantic-2*.whl '*/METADATA' | sed -n 's/^Requires-Dist: \(pydantic-core==[0-9.]*\).*/\1/p')"
cat >"$folder/setup.sh" <<'SETUP'
mkdir -p /tmp/kit/site
tar -xzf "$(dirname "$0")/source.tar.gz" -C /tmp/kit
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/kit/site \
    "$(dirname "$0")"/wheels/*.whl
SETUP
du -ah "$folder" | sort -k 2
