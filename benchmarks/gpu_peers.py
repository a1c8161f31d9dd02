"""PyTorch's side of `benchmarks/gpu.py`: the same networks, with data in the device's memory.

As somebody who knows it would write it: channels last, autocast for 16 bits, TensorFloat-32 for
products and convolutions of float32 (XLA's default, too), fused optimizers, cuDNN's benchmarks.
"Compiled" is `torch.compile` of the network and its loss.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import gpu_workloads as shared
from benchmarks.criteo_tables_program import DIMENSION, SIZES
from benchmarks.gpu_workloads import Workload

WARM = 5


def rate(workload: Workload, compiled: bool) -> tuple[float, float]:
    """Steps a second, and the host's seconds a step, of the best of three runs."""
    import torch

    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loss_of, batches, optimizers = _NETWORKS[workload.kind](workload, torch, device)
    call = torch.compile(loss_of) if compiled else loss_of

    def step(number: int) -> None:
        for each in optimizers:
            each.zero_grad()
        with torch.autocast(
            device.type, torch.bfloat16, enabled=workload.dtype == "bfloat16", cache_enabled=False
        ):
            loss = call(*batches(number))
        loss.backward()
        for each in optimizers:
            each.step()

    def run(count: int) -> tuple[float, float]:
        _wait(torch)
        started, before = time.perf_counter(), time.process_time()
        for number in range(count):
            step(number)
        _wait(torch)
        after = time.process_time()
        return count / (time.perf_counter() - started), (after - before) / count

    run(WARM)
    return max(run(workload.steps) for _ in range(3))


def products(size: int, count: int, dtype: str) -> float:
    """When the last `count` products of matrices began, which are over then."""
    import torch

    torch.set_float32_matmul_precision("high")
    one, other = torch.randn(2, size, size, device="cuda", dtype=getattr(torch, dtype))
    one @ other
    _wait(torch)
    started = time.perf_counter()
    for _ in range(count):
        one @ other
    _wait(torch)
    return started


def _wait(torch: Any) -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _rows(torch: Any, device: Any, batch: int, *arrays: Any) -> Callable[[int], list[Any]]:
    """Batches of shuffled rows, gathered on the device."""
    tensors = [torch.from_numpy(np.ascontiguousarray(each)).to(device) for each in arrays]
    count = len(tensors[0])
    orders: dict[int, Any] = {}

    def of(number: int) -> list[Any]:
        epoch, at = divmod(number % (count // batch * 1000), count // batch)
        if epoch not in orders:
            orders.clear()
            orders[epoch] = torch.randperm(count, device=device)
        chosen = orders[epoch][at * batch : (at + 1) * batch]
        return [each.index_select(0, chosen) for each in tensors]

    return of


def _dense(torch: Any, width: int, hidden: tuple[int, ...], outputs: int) -> Any:
    layers: list[Any] = []
    for units in hidden:
        layers += [torch.nn.Linear(width, units), torch.nn.ReLU()]
        width = units
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, outputs))


def _resnet(workload: Workload, torch: Any, device: Any) -> tuple[Any, Any, list[Any]]:
    import torchvision  # type: ignore[import-not-found,import-untyped,unused-ignore]

    model = torchvision.models.resnet50(num_classes=shared.CLASSES).to(device)
    model = model.to(memory_format=torch.channels_last)
    shape = (workload.batch, 3, workload.size, workload.size)
    images = torch.randn(shape, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, shared.CLASSES, (workload.batch,), device=device)

    def loss_of(images: Any, labels: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(images), labels)

    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
    return loss_of, lambda number: (images, labels), [optimizer]


def _transformer(workload: Workload, torch: Any, device: Any) -> tuple[Any, Any, list[Any]]:
    nn, functional = torch.nn, torch.nn.functional
    width, length = workload.width, workload.size

    class Layer(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.inputs = nn.Linear(width, 3 * width)
            self.outputs = nn.Linear(width, width)
            self.inner = nn.Linear(width, 4 * width)
            self.outer = nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = self.inputs(self.norms[0](x)).split(width, 2)
            queries, keys, values = (
                each.view(-1, length, shared.HEADS, width // shared.HEADS).transpose(1, 2)
                for each in parts
            )
            found = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
            x = x + self.outputs(found.transpose(1, 2).reshape(-1, length, width))
            return x + self.outer(functional.gelu(self.inner(self.norms[1](x))))

    class Model(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(shared.VOCABULARY, width)
            self.places = nn.Parameter(torch.randn(length, width) * 0.02)
            self.layers = nn.Sequential(*(Layer() for _ in range(workload.layers)))
            self.norm = nn.LayerNorm(width)

        def forward(self, symbols: Any) -> Any:
            x = self.norm(self.layers(self.table(symbols) + self.places))
            return functional.linear(x, self.table.weight)

    model = Model().to(device)
    drawn = torch.randint(0, shared.VOCABULARY, (workload.batch, length + 1), device=device)

    def loss_of(symbols: Any, labels: Any) -> Any:
        return functional.cross_entropy(model(symbols).flatten(0, 1).float(), labels.flatten())

    optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=True)
    return loss_of, lambda number: (drawn[:, :-1], drawn[:, 1:]), [optimizer]


def _cnn(workload: Workload, torch: Any, device: Any) -> tuple[Any, Any, list[Any]]:
    nn = torch.nn
    layers: list[Any] = []
    for inputs, outputs in ((1, 32), (32, 64)):
        layers += [nn.Conv2d(inputs, outputs, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), _dense(torch, 7 * 7 * 64, (1024,), 10)).to(device)
    images, labels = shared.pictures()
    batches = _rows(torch, device, workload.batch, images.reshape(-1, 1, 28, 28), labels)

    def loss_of(images: Any, labels: Any) -> Any:
        return nn.functional.cross_entropy(model(images), labels)

    return loss_of, batches, [torch.optim.Adam(model.parameters(), 1e-4, fused=True)]


def _iris(workload: Workload, torch: Any, device: Any) -> tuple[Any, Any, list[Any]]:
    model = _dense(torch, 4, (10, 10), 3).to(device)
    rows, labels = shared.iris()

    def loss_of(rows: Any, labels: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(rows), labels)

    optimizer = torch.optim.Adagrad(model.parameters(), 0.05, initial_accumulator_value=0.1)
    return loss_of, _rows(torch, device, workload.batch, rows, labels), [optimizer]


def _wide_deep(workload: Workload, torch: Any, device: Any) -> tuple[Any, Any, list[Any]]:
    nn = torch.nn
    rows = shared.BUCKETS * shared.CATEGORIES  # one table: a lookup each for all categories
    wide, deep = nn.Embedding(rows, 1).to(device), nn.Embedding(rows, 8).to(device)
    network = _dense(torch, 8 * shared.CATEGORIES + shared.NUMBERS, shared.HIDDEN, 1).to(device)
    first = torch.arange(shared.CATEGORIES, device=device) * shared.BUCKETS

    def loss_of(ids: Any, numbers: Any, labels: Any) -> Any:
        places = ids + first
        logits = network(torch.cat([deep(places).flatten(1), numbers], 1))[:, 0]
        logits = logits + wide(places).sum((1, 2))
        return nn.functional.binary_cross_entropy_with_logits(logits, labels.float())

    weights = [*deep.parameters(), *network.parameters()]
    optimizers = [
        torch.optim.Adagrad(weights, 0.05, initial_accumulator_value=0.1),
        torch.optim.Adagrad(wide.parameters(), 0.2, initial_accumulator_value=0.1),
    ]
    return loss_of, _rows(torch, device, workload.batch, *shared.table()), optimizers


def _criteo(workload: Workload, torch: Any, device: Any) -> tuple[Any, Any, list[Any]]:
    nn = torch.nn
    rows = [max(2, size // workload.size) for size in SIZES]
    first = torch.tensor(np.cumsum([0, *rows[:-1]]), device=device)
    table = nn.Embedding(sum(rows), DIMENSION, sparse=True).to(device)
    network = _dense(torch, len(rows) * DIMENSION + 13, (256, 128), 1).to(device)

    def loss_of(ids: Any, numbers: Any, labels: Any) -> Any:
        found = table(ids + first).flatten(1)
        logits = network(torch.cat([found, numbers], 1))[:, 0]
        return nn.functional.binary_cross_entropy_with_logits(logits, labels.float())

    optimizers = [
        torch.optim.Adagrad(each.parameters(), 0.05, initial_accumulator_value=0.1)
        for each in (table, network)
    ]
    return loss_of, _rows(torch, device, workload.batch, *shared.clicks(workload)), optimizers


_NETWORKS: dict[str, Callable[[Workload, Any, Any], tuple[Any, Any, list[Any]]]] = {
    "resnet": _resnet,
    "transformer": _transformer,
    "cnn": _cnn,
    "iris": _iris,
    "wide_deep": _wide_deep,
    "criteo": _criteo,
}
