"""Ridge regression twice in one graph: solved by matrices, and found by gradient descent.

Ridge regression looks for the weights `beta` with the least

    cost(beta) = |y - X beta|^2 + penalty |beta|^2

Where the cost is least its gradient is zero, and that can be solved for `beta`:

    beta = (X^T X + penalty I)^-1 X^T y

Most models have no such formula, and are trained instead: start anywhere, and walk against the
gradient. This page has both in one graph, so that each shows the other right. New here:

* matrices as tensors: `matmul`, `transpose`, `matrix_solve`;
* `tf.gradients(cost, [beta])` adds the gradient to the graph, as tensors like all others, and an
  optimizer is no more than that and an assignment;
* `tf.while_loop`: the same descent as an operation of the graph, which a single `session.run` runs
  to its end.

    python examples/ridge_regression.py [--steps 100] [--penalty 1.0] [--learning_rate 0.001]
"""

from __future__ import annotations

import argparse

import numpy as np

import estimatorkit as tf


def made_up_data(examples, features, noise):
    """Rows of `features` random numbers after a 1 for the intercept, and targets that follow a
    rule (`truth`) but for some noise."""
    random = np.random.default_rng(0)
    columns = random.normal(size=(examples, features))
    inputs = np.hstack([np.ones((examples, 1)), columns]).astype(np.float32)
    truth = random.normal(size=(features + 1, 1)).astype(np.float32)
    targets = inputs @ truth + noise * random.normal(size=(examples, 1))
    return inputs, targets.astype(np.float32), truth


def cost_of(beta, X, y, penalty):
    """What ridge regression makes small; a scalar."""
    return tf.reduce_sum(tf.square(y - tf.matmul(X, beta))) + penalty * tf.reduce_sum(beta**2)


def closed_form(X, y, penalty):
    """The weights by the formula. Solving the system is cheaper than inverting its matrix, and
    more exact."""
    X_transposed = tf.transpose(X)
    size = X.shape[1].value
    return tf.matrix_solve(
        tf.matmul(X_transposed, X) + penalty * tf.eye(size), tf.matmul(X_transposed, y)
    )


def main(steps=100, penalty=1.0, learning_rate=0.001, examples=200, features=6):
    inputs, targets, truth = made_up_data(examples, features, noise=0.1)
    with tf.Graph().as_default(), tf.Session() as session:
        X = tf.constant(inputs, name="X")
        y = tf.constant(targets, name="y")

        # 1. The formula.
        solved = closed_form(X, y, penalty)

        # 2. Gradient descent, one step a call: the variable is where the walk has come to.
        start = tf.random_uniform([features + 1, 1], -1.0, 1.0, seed=1)
        beta = tf.Variable(start, name="beta")
        cost = cost_of(beta, X, y, penalty)
        (gradient,) = tf.gradients(cost, [beta])
        step = tf.assign_sub(beta, learning_rate * gradient)

        # 3. The same as a loop in the graph: what the variable was is what the loop hands on.
        def walk(count, here):
            (slope,) = tf.gradients(cost_of(here, X, y, penalty), [here])
            return count + 1, here - learning_rate * slope

        zeros = tf.zeros([features + 1, 1])
        _, walked = tf.while_loop(lambda count, _: count < steps, walk, [tf.constant(0), zeros])

        session.run(tf.global_variables_initializer())
        for number in range(steps):
            if number % max(steps // 10, 1) == 0:
                print(f"step {number:3d}: cost {session.run(cost):9.3f}")
            session.run(step)
        last_cost, found, exact, looped = session.run([cost, beta, solved, walked])
        least = session.run(cost_of(solved, X, y, penalty))
    print(f"step {steps:3d}: cost {last_cost:9.3f}, by the formula {least:.3f}\n")
    print("    truth  formula  descent     loop")
    for row in np.hstack([truth, exact, found, looped]):
        print("".join(f"{weight:9.4f}" for weight in row))
    difference = max(np.abs(found - exact).max(), np.abs(looped - exact).max())
    print(f"\nlargest difference to the formula: {difference:.2g}")
    return {"cost": float(last_cost), "least_cost": float(least), "difference": float(difference)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="steps of the descent")
    parser.add_argument("--penalty", type=float, default=1.0, help="on large weights")
    parser.add_argument("--learning_rate", type=float, default=0.001, help="length of a step")
    parser.add_argument("--examples", type=int, default=200, help="rows of made-up data")
    parser.add_argument("--features", type=int, default=6, help="columns of made-up data")
    main(**vars(parser.parse_args()))
