"""Optimizers against TensorFlow 2.15.1's trajectories, and the cost of a step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from estimatorkit.core import builtin_ops, registry
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.graph import Graph, control_dependencies
from estimatorkit.core.tensor import Operation
from estimatorkit.core.variables import Variable
from estimatorkit.core.x64 import x64
from estimatorkit.ops.array import filling, indexing
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.initializers import Constant, Zeros
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    global_variables_initializer,
)
from estimatorkit.ops.variables.variable_scope import get_variable, variable_scope
from estimatorkit.runtime.session import Session
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.optimizers import keras_rules, optimizer_rules, optimizers
from estimatorkit.train.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.update_rule import UpdateRule
from tests.golden.golden_files import FOLDER

FACTS = json.loads((FOLDER / "optimizers.json").read_text())
CASES = list(FACTS["dense"])
NAMES = {"dense": ["matrix", "vector"], "sparse": ["table"]}


def rules_of(*modules: ModuleType) -> list[UpdateRule]:
    return [
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, UpdateRule)
        and (each is not optimizer_rules.adam or module is optimizer_rules)
    ]


RULES = rules_of(optimizer_rules, keras_rules)


@pytest.fixture(scope="module")
def golden() -> dict[str, NDArray[Any]]:
    with np.load(FOLDER / "optimizers.npz") as file:
        return dict(file)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


def started() -> Session:
    session = Session()
    session.run(global_variables_initializer())
    return session


def weights(value: Any = (1.0, -2.0), name: str = "w", **rest: Any) -> Variable:
    return Variable(np.array(value, np.float32), name=name, **rest)


# -- the trajectories


@dataclass
class Model:
    """The variables of `make_optimizers.run_case`, and an operation that updates them."""

    optimizer: Optimizer
    update: Operation
    trained: list[Variable]
    others: list[Variable]


def make_model(
    golden: dict[str, NDArray[Any]], facts: dict[str, Any], kind: str, given: Any, prefix: str = ""
) -> Model:
    before = set(global_variables())
    names = NAMES[kind]
    variables = [Variable(golden[f"data/{name}/start"], name=f"{prefix}{name}") for name in names]
    factors = [indexing.gather(variables[0], given["rows"])] if kind == "sparse" else variables
    losses = [reduce.reduce_sum(f * given[n]) for n, f in zip(names, factors, strict=True)]
    step = get_or_create_global_step()
    optimizer = getattr(optimizers, facts["class"])(**facts["arguments"])
    pairs = optimizer.compute_gradients(elementwise.add_n(losses), variables)
    update = optimizer.apply_gradients(pairs, None if prefix else step)
    made = [each for each in global_variables() if each not in before]
    others = [each for each in made if each not in variables and each is not step]
    return Model(optimizer, update, variables, others)


def placeholders(golden: dict[str, NDArray[Any]], kind: str) -> dict[str, Any]:
    given: dict[str, Any] = {
        name: builtin_ops.placeholder("float32", golden[f"data/{name}/gradients"].shape[1:])
        for name in NAMES[kind]
    }
    if kind == "sparse":
        given["rows"] = builtin_ops.placeholder("int64", [4])
    return given


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_names_match_tensorflow(golden: dict[str, NDArray[Any]], case: str, kind: str) -> None:
    facts = FACTS[kind][case]
    model = make_model(golden, facts, kind, placeholders(golden, kind))
    kinds = {op.type for op in model.update.graph.get_operations() if "Apply" in op.type}
    assert all(each.startswith("SparseApply" if kind == "sparse" else "Apply") for each in kinds)
    found = {
        "update_op": model.update.name,
        "default_name": model.optimizer.get_name(),
        "slot_variables": {
            slot: [model.optimizer.get_slot(each, slot).op.name for each in model.trained]
            for slot in model.optimizer.get_slot_names()
        },
        "variables_in_order_of_creation": [each.op.name for each in global_variables()],
    }
    assert {name: facts[name] for name in found} == found


@pytest.mark.slow
@pytest.mark.parametrize("kind", NAMES)
def test_trajectories_and_slots_match_tensorflow(
    golden: dict[str, NDArray[Any]], kind: str
) -> None:
    given = placeholders(golden, kind)
    models = {
        case: make_model(golden, FACTS[kind][case], kind, given, f"{case}/") for case in CASES
    }
    updates = [model.update for model in models.values()]
    trained = {case: model.trained for case, model in models.items()}
    others = {case: model.others for case, model in models.items()}
    with started() as session:
        at_start, after = session.run(others), []
        for step in range(len(golden[f"data/{NAMES[kind][0]}/gradients"])):
            feeds = {given[name]: golden[f"data/{name}/gradients"][step] for name in NAMES[kind]}
            if kind == "sparse":
                feeds[given["rows"]] = golden["data/table/rows"][step]
            session.run(updates, feeds)
            after.append(session.run(trained))
        at_end = session.run(others)
    for case in CASES:
        facts = FACTS[kind][case]
        order = facts["variables_in_order_of_creation"]
        held = [name for name in order if name not in (*NAMES[kind], "global_step")]
        begun = zip(held, at_start[case], strict=True)
        assert {name: np.ravel(v)[0] for name, v in begun} == pytest.approx(facts["at_start"])
        found = {f"slots/{name}": v for name, v in zip(held, at_end[case], strict=True)}
        for place, name in enumerate(NAMES[kind]):
            found[f"trajectory/{name}"] = np.stack([values[case][place] for values in after])
        prefix = f"{kind}/{case}/"
        assert set(found) == {key.removeprefix(prefix) for key in golden if key.startswith(prefix)}
        for name, value in found.items():
            # 1e-6 holds but for Ftrl, whose 'linear' sums numbers of up to 60.
            np.testing.assert_allclose(
                value, golden[prefix + name], rtol=3e-6, atol=3e-6, err_msg=f"{case} {name}"
            )


def test_golden_files_cover_all_optimizers() -> None:
    classes = {facts["class"] for facts in FACTS["dense"].values()}
    assert classes <= set(optimizers.__all__)


# -- the rules


@pytest.mark.slow
def check_examples(rules: Sequence[UpdateRule]) -> None:
    rows = {
        f"{prefix}{rule.name}": (rule, registry.lookup(f"{prefix}{rule.name}"))
        for rule in rules
        for prefix in (("Apply",) if rule.sparse_rows == "none" else ("Apply", "SparseApply"))
    }
    cases = {name: row.cases()[0] for name, (_, row) in rows.items()}

    def run_all(inputs: dict[str, Any]) -> dict[str, Any]:
        return {name: rows[name][1].kernel(*given) for name, given in inputs.items()}

    with x64():
        found = jax.jit(run_all)({name: case.inputs for name, case in cases.items()})
    for name, (rule, row) in rows.items():
        assert len(found[name]) == len(row.semantics.updates) == 1 + len(rule.slots)
        for result, expected in zip(found[name], cases[name].expected, strict=True):
            assert result.dtype == np.float32
            np.testing.assert_allclose(result, expected, rtol=2e-6, atol=1e-7, err_msg=name)


def test_update_rule_examples() -> None:
    check_examples(RULES)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("sparse", [False, True])
def test_step_keeps_variable_dtype(dtype: str, sparse: bool) -> None:
    w = get_variable("w", [3, 1], dtype, initializer=Constant(1.0))
    rows = indexing.gather(w, [1, 1]) if sparse else w
    optimizer = optimizers.AdamOptimizer(0.125)
    update = optimizer.minimize(reduce.reduce_sum(rows))
    with started() as session:
        session.run(update)
        value = session.run(w)
        slot = optimizer.get_slot(w, "v")
        assert slot is not None
        assert slot.dtype is w.dtype is as_dtype(dtype)
    # Adam's first step is the learning rate, also where its epsilon is 0 in the variable's dtype.
    expected = [1.0, 0.875, 1.0] if sparse else [0.875] * 3
    np.testing.assert_allclose(value.astype(np.float64)[:, 0], expected, rtol=1e-3)


def _abstract(shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def large_step(rule: UpdateRule) -> tuple[list[Any], int]:
    """The arguments of a sparse step on a table of a million rows, and how many of them change."""
    rows, columns, touched = 1_000_000, 8, 64
    state = [_abstract((rows, columns), np.float32) for _ in (0, *rule.slots)]
    gradient = _abstract((touched, columns), np.float32)
    indices = _abstract((touched,), np.int64)
    hyperparameters = [_abstract((), np.float32) for _ in rule.hyperparameters]
    return [*state, gradient, indices, *hyperparameters], len(state)


@pytest.mark.parametrize(
    "rule", [each for each in RULES if each.sparse_rows != "none"], ids=lambda rule: rule.name
)
def test_sparse_step_allocates_nothing_of_table_size(rule: UpdateRule) -> None:
    arguments, changed = large_step(rule)
    with x64():
        jaxpr = jax.make_jaxpr(rule.sparse)(*arguments)
    large = [
        equation.primitive.name
        for equation in jaxpr.eqns
        if any(variable.aval.size >= 1_000_000 for variable in equation.outvars)
    ]
    if rule.sparse_rows == "touched":
        assert large == ["scatter"] * changed
    elif rule.sparse_rows == "added":
        assert large == ["scatter-add"]
    else:
        adams = {"Adam", "AdamW", "AdamWithAmsgrad", "Nadam", "NesterovAdam"}
        assert rule.name in adams | {"KerasRMSProp", "KerasCenteredRMSProp", "AddSign", "PowerSign"}
        assert len(large) > changed


@pytest.mark.slow
def test_sparse_steps_update_in_place() -> None:
    arguments, changed = large_step(optimizer_rules.ftrl)
    with x64():
        step = jax.jit(optimizer_rules.ftrl.sparse, donate_argnums=tuple(range(changed)))
        memory = step.lower(*arguments).compile().memory_analysis()
    assert memory is not None
    assert memory.temp_size_in_bytes < 8_000_000 * 4 / 100


def test_session_updates_large_table_in_place() -> None:
    rows = 1_000_000
    table = get_variable("table", [rows, 4], initializer=Zeros())
    ids = builtin_ops.placeholder("int64", [3])
    loss = reduce.reduce_sum(indexing.gather(table, ids))
    optimizer = optimizers.AdagradOptimizer(0.5, initial_accumulator_value=1.0)
    update = optimizer.minimize(loss)
    assert not [
        op.name
        for op in update.graph.get_operations()
        if "Initializer" not in op.name
        and op.type not in ("ReadVariableOp", "AssignVariableOp")
        and any(output.shape.num_elements() == rows * 4 for output in op.outputs)
    ]
    with started() as session:
        session.run(update, {ids: [7, 999_999, 7]})
        new = session.run(indexing.gather(table, [6, 7, 999_999]))
    expected = [0.0, -0.5 * 2 / np.sqrt(5), -0.5 / np.sqrt(2)]
    np.testing.assert_allclose(new[:, 0], expected, rtol=1e-6)


def test_out_of_range_and_empty_indices_change_nothing() -> None:
    state = np.arange(6, dtype=np.float32).reshape(3, 2)
    for rule, others in (
        (optimizer_rules.gradient_descent, []),
        (keras_rules.rms_prop, [np.float32(0), np.float32(1e-12)]),
    ):
        slots = [np.zeros_like(state) for _ in rule.slots]
        for indices in ([-1, 3, 1], []):
            gradient = [np.ones((len(indices), 2), np.float32), np.array(indices, np.int32)]
            new, *_ = jax.jit(rule.sparse)(state, *slots, *gradient, np.float32(1), *others)
            expected = state.copy()
            expected[1] -= bool(indices)
            np.testing.assert_array_equal(new, expected)


# -- one call a step


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_step_is_one_segment_and_one_compilation() -> None:
    x = builtin_ops.placeholder("float32", [None, 2])
    w = get_variable("w", [2, 1], initializer=Constant(0.5))
    table = get_variable("table", [5, 2], initializer=Constant(0.1))
    ids = builtin_ops.placeholder("int64", [4])
    loss = reduce.reduce_mean(elementwise.square(x @ w)) + reduce.reduce_sum(
        elementwise.square(indexing.gather(table, ids))
    )
    step = get_or_create_global_step()
    rate = 0.1 / elementwise.cast(step + 1, "float32")
    for make in (optimizers.AdamOptimizer, optimizers.AdagradOptimizer, optimizers.FtrlOptimizer):
        update = make(rate).minimize(loss, step)
        with started() as session:
            plan = session.plan([update, loss], [x, ids])
            assert [segment.place for segment in plan.segments] == ["device"]
            feeds = {x: np.ones((3, 2), np.float32), ids: [0, 0, 4, 1]}
            losses = [session.run([update, loss], feeds)[1] for _ in range(5)]
            assert (
                sum(session.state.compilations.values()) == 1
            )  # the initializers are not compiled
            assert session.run(step) == 5
        assert losses == sorted(losses, reverse=True)
        assert losses[0] == pytest.approx(1.0 + 4 * 2 * 0.01)  # before the first update


@pytest.mark.usefixtures("compiled")
def test_learning_rates_are_inputs() -> None:
    w = weights([10.0])
    rate = builtin_ops.placeholder("float32", [])
    update = optimizers.GradientDescentOptimizer(rate).minimize(w * 1.0)
    with started() as session:
        for value in (1.0, 2.0, 4.0):
            session.run(update, {rate: value})
        assert session.run(w) == pytest.approx([3.0])
        assert session.state.compilations[update.name] == 1


@pytest.mark.parametrize(
    "rate",
    [
        0.5,
        np.float64(0.5),
        lambda: 0.5,
        lambda: constant(0.5),
        lambda: Variable(0.5, trainable=False),
        lambda: constant(0.5, "float64"),
    ],
    ids=["number", "numpy", "function", "tensor", "variable", "float64 tensor"],
)
@pytest.mark.parametrize("make", [optimizers.GradientDescentOptimizer, optimizers.AdamOptimizer])
def test_kinds_of_learning_rates(rate: Any, make: Any) -> None:
    w = weights([1.0])
    update = make(rate).minimize(w * 1.0)
    with started() as session:
        session.run(update)
        assert session.run(w) == pytest.approx([0.5])


# -- the operations and variables that are made


def test_operation_names_match_tensorflow(graph: Graph) -> None:
    expected = json.loads((FOLDER / "graph.json").read_text())["snippets"]["minimize"]["facts"]
    w = weights()
    loss = reduce.reduce_sum(elementwise.square(w), name="loss")
    step = get_or_create_global_step()
    made = {
        "GradientDescent": optimizers.GradientDescentOptimizer(0.1).minimize(loss),
        "GradientDescent again": optimizers.GradientDescentOptimizer(0.1).minimize(loss),
        "GradientDescent with step": optimizers.GradientDescentOptimizer(0.1).minimize(loss, step),
        "Adam": optimizers.AdamOptimizer().minimize(loss),
        "Adam again": optimizers.AdamOptimizer().minimize(loss, step),
        "Momentum": optimizers.MomentumOptimizer(0.1, 0.9).minimize(loss),
        "Adagrad": optimizers.AdagradOptimizer(0.1).minimize(loss),
        "RMSProp": optimizers.RMSPropOptimizer(0.1).minimize(loss),
        "Ftrl": optimizers.FtrlOptimizer(0.1).minimize(loss),
        "named": optimizers.AdamOptimizer(name="Mine").minimize(loss),
        "named minimize": optimizers.GradientDescentOptimizer(0.1).minimize(loss, name="train"),
    }
    types = {"AssignAddVariableOp": "AssignAdd"}
    assert {label: [op.name, types.get(op.type, op.type)] for label, op in made.items()} == {
        label: expected[label] for label in made
    }
    assert [variable.name for variable in global_variables()] == expected["global variables"]
    names = [op.name for op in graph.get_operations()]
    assert [name for name in names if "/update_w/Apply" in name] == expected["updates"]
    assert graph.get_collection("train_op") == list(made.values())


def test_slots_use_current_variable_scope() -> None:
    with variable_scope("tower"):
        w = get_variable("w", [2], initializer=Zeros())
        optimizer = optimizers.FtrlOptimizer(0.1, accum_name="sum")
        optimizer.minimize(reduce.reduce_sum(w))
    names = [variable.op.name for variable in optimizer.variables()]
    assert names == ["tower/tower/w/Ftrl", "tower/tower/w/sum"]  # twice, as TensorFlow 1 does


def test_slots_and_optimizer_variables() -> None:
    w, other = weights(), weights(name="other")
    optimizer = optimizers.AdamOptimizer(0.1)
    assert optimizer.get_slot_names() == []
    update = optimizer.minimize(reduce.reduce_sum(w * w), var_list=[w])
    assert optimizer.get_slot_names() == ["m", "v"]
    assert optimizer.get_slot(other, "m") is None
    assert optimizer.get_slot(w, "momentum") is None
    names = [variable.op.name for variable in optimizer.variables()]
    assert names == ["beta1_power", "beta2_power", "w/Adam", "w/Adam_1"]
    assert not any(variable.trainable for variable in optimizer.variables())
    with started() as session:
        session.run(update)
        slot = optimizer.get_slot(w, "m")
        assert slot is not None
        np.testing.assert_allclose(session.run(slot), [0.2, -0.4], rtol=1e-6)
        np.testing.assert_array_equal(session.run(other), [1.0, -2.0])
    with Graph().as_default():
        assert optimizer.variables() == []


def test_optimizer_in_two_graphs_with_two_losses() -> None:
    optimizer = optimizers.MomentumOptimizer(0.5, 0.5)
    for _ in range(2):
        with Graph().as_default():
            w = weights([1.0])
            updates = [optimizer.minimize(w * 1.0), optimizer.minimize(w * 2.0)]
            assert [each.op.name for each in optimizer.variables()] == ["w/Momentum"]
            with started() as session:
                for update in updates:
                    session.run(update)
                # The slot is 1, then 0.5 + 2.
                assert session.run(w) == pytest.approx([1.0 - 0.5 - 1.25])


def test_updates_follow_control_dependencies_and_step_follows_updates() -> None:
    w, moving = weights([1.0]), weights([0.0], "moving", trainable=False)
    step = get_or_create_global_step()
    with control_dependencies([moving.assign_add([1.0])]):
        update = optimizers.AdamOptimizer(0.1).minimize(w * 1.0, step)
    with started() as session:
        session.run(update)
        assert session.run([moving, step, w]) == [pytest.approx([1.0]), 1, pytest.approx([0.9])]


def test_constraints_are_applied_after_updates() -> None:
    w = weights([1.0, -1.0], constraint=lambda value: elementwise.maximum(value, 0.0))
    update = optimizers.GradientDescentOptimizer(0.5).minimize(reduce.reduce_sum(w))
    with started() as session:
        session.run(update)
        np.testing.assert_array_equal(session.run(w), [0.5, 0.0])


def test_gradients_can_be_modified() -> None:
    w, without = weights([1.0, 2.0]), weights([5.0], "without")
    optimizer = optimizers.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(w * 3.0, grad_loss=constant([1.0, 0.5]))
    assert pairs[1] == (None, without)
    update = optimizer.apply_gradients([(pairs[0][0] * 2.0, w), pairs[1]])
    constants = optimizer.apply_gradients([([1, 1], w)])
    with started() as session:
        session.run(update)
        np.testing.assert_allclose(session.run(w), [-5.0, -1.0])
        session.run(constants)
        np.testing.assert_allclose(session.run(w), [-6.0, -2.0])


def test_callable_and_non_scalar_losses() -> None:
    w = weights([1.0, 2.0])
    update = optimizers.GradientDescentOptimizer(1.0).minimize(lambda: w * w)
    with started() as session:
        session.run(update)
        np.testing.assert_allclose(session.run(w), [-1.0, -2.0])


def test_variable_gathered_twice_gets_both_gradients() -> None:
    table = weights(np.zeros((4, 1)), "table")
    loss = reduce.reduce_sum(indexing.gather(table, [0, 1])) + reduce.reduce_sum(
        indexing.gather(table, [1, 3]) * 2.0
    )
    update = optimizers.AdagradOptimizer(1.0, initial_accumulator_value=7.0).minimize(loss)
    with started() as session:
        session.run(update)
        expected = [-1 / np.sqrt(8), -3 / np.sqrt(16), 0, -2 / np.sqrt(11)]
        np.testing.assert_allclose(session.run(table)[:, 0], expected, rtol=1e-6)


def test_custom_optimizer() -> None:
    class SignDescent(Optimizer):
        def __init__(self, rate: float) -> None:
            super().__init__(False, "SignDescent")
            self.rate = rate

        def _create_slots(self, var_list: Any) -> None:
            for variable in var_list:
                self._zeros_slot(variable, "count", "Count")

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            slot = self.get_slot(var, "count")
            assert slot is not None
            moved = var.assign_sub(elementwise.sign(grad) * self.rate)
            return builtin_ops.group(moved, slot.assign_add(filling.ones_like(slot)))

    w, table = weights([3.0, -3.0]), weights([[1.0], [1.0]], "table")
    optimizer = SignDescent(0.5)
    loss = reduce.reduce_sum(w * w) + reduce.reduce_sum(indexing.gather(table, [1]))
    update = optimizer.minimize(loss)
    assert update.name == "SignDescent"
    with started() as session:
        session.run(update)
        np.testing.assert_allclose(session.run(w), [2.5, -2.5])
        np.testing.assert_allclose(session.run(table), [[1.0], [0.5]])
        slot = optimizer.get_slot(w, "count")
        assert slot is not None
        assert slot.op.name == "w/Count"
        np.testing.assert_allclose(session.run(slot), [1.0, 1.0])


# -- errors


def test_no_variables_raises() -> None:
    optimizer = optimizers.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match=r"(?s)No variables to optimize\..*no trainable variable"):
        optimizer.minimize(constant(1.0))
    with pytest.raises(ValueError, match=r"(?s)No variables to optimize\..*var_list=\[\]"):
        optimizer.minimize(constant(1.0), var_list=[])
    with pytest.raises(ValueError, match="No variables provided"):
        optimizer.apply_gradients([])


def test_no_gradients_raises() -> None:
    w = weights()
    optimizer = optimizers.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="No gradients provided for any variable") as caught:
        optimizer.minimize(constant(1.0, name="loss"))
    message = str(caught.value)
    assert "tf.Variable 'w:0' shape=(2,) dtype=float32" in message
    assert 'loss Tensor("loss:0"' in message
    assert "test_optimizers.py" in message
    assert "hint:" in message
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.apply_gradients([(None, w)])


@pytest.mark.parametrize("where", ["loss", "variable", "grad_loss"])
def test_non_floating_loss_or_variable_raises(where: str) -> None:
    w = weights()
    counts = Variable(np.array([1, 2], np.int32), name="counts")
    optimizer = optimizers.GradientDescentOptimizer(0.1)
    loss = counts * 2 if where == "loss" else w * 2.0
    arguments: dict[str, Any] = {}
    if where == "variable":
        pairs = [(constant([1.0, 1.0]), counts)]
        with pytest.raises(ValueError, match=r"(?s)does not fit variable counts.*int32 of shape"):
            optimizer.apply_gradients(pairs)
        return
    if where == "grad_loss":
        arguments["grad_loss"] = constant([1, 1])
    expected = r"Invalid type tf.int32 for .*:0, expected: \[tf.float32, tf.float64, tf.float16"
    with pytest.raises(ValueError, match=expected):
        optimizer.minimize(loss, **arguments)


def test_gradient_variable_pairs_are_checked() -> None:
    w = weights()
    optimizer = optimizers.GradientDescentOptimizer(0.1)
    wrong: list[tuple[type[Exception], str, Any]] = [
        (TypeError, "requires pairs", w),
        (TypeError, "the variable is the second", (w, constant([1.0, 1.0], name="g").op)),
        (NotImplementedError, "Trying to update a Tensor", (constant(1.0), constant(1.0))),
        (ValueError, r"(?s)does not fit.*shape \(2,\).*shape \(3,\)", (constant([1.0] * 3), w)),
        (ValueError, r"(?s)does not fit.*float32.*float64", (constant([1.0] * 2, "float64"), w)),
    ]
    for kind, message, pair in wrong:
        with pytest.raises(kind, match=message):
            optimizer.apply_gradients([pair])
    with pytest.raises(TypeError, match="global_step must be a variable"):
        optimizer.minimize(w * 1.0, global_step=constant(1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="gate_gradients must be one of"):
        optimizer.compute_gradients(w * 1.0, gate_gradients=3)
    table = weights([[1.0]], "table", constraint=lambda value: value)
    with pytest.raises(RuntimeError, match="constraint function on a sparse variable"):
        optimizer.minimize(indexing.gather(table, [0]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optimizers.GradientDescentOptimizer(0.1, name=""), "Must specify the optimizer"),
        (lambda: optimizers.AdagradOptimizer(0.1, 0.0), "must be positive: 0.0"),
        (lambda: optimizers.AdagradOptimizer(0.1, -1.0, epsilon=1.0), "must be positive or zero"),
        (lambda: optimizers.ProximalAdagradOptimizer(0.1, 0.0), "must be positive: 0.0"),
        (lambda: optimizers.FtrlOptimizer(0.1, learning_rate_power=0.5), "learning_rate_power"),
        (lambda: optimizers.FtrlOptimizer(0.1, l1_regularization_strength=-1.0), "l1_regular"),
        (
            lambda: optimizers.RMSPropOptimizer(0.1, momentum=0.9, epsilon_in_root=False),
            "epsilon_in_root=False excludes momentum",
        ),
    ],
)
def test_arguments_are_checked(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_custom_optimizer_without_apply_raises() -> None:
    w = weights()
    with pytest.raises(NotImplementedError, match="does not implement gradient updates"):
        Optimizer(False, "Bare").minimize(w * 1.0)
