"""The `estimatorkit` command.

Exit codes: 0 success; 1 failure (data, a checkpoint, the library); 2 invalid command line or
configuration; 130 interrupted. Results go to stdout, notes and errors to stderr, without a
traceback unless `--traceback` is given. All imports but click are inside the commands, so that
`--help` is fast.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import logging
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from estimatorkit.core.errors import OpError
from estimatorkit.experiment.errors import DataError, UserError
from estimatorkit.logger import logger
from estimatorkit.version import __version__

if TYPE_CHECKING:
    from estimatorkit.experiment.earlier_run import Choice
    from estimatorkit.experiment.runner import Trained
    from estimatorkit.experiment.schema import Experiment

SAMPLES = 3

_ALL = 1000
"""Longer than any command's summary; by default, click cuts summaries to 45 characters."""


class Failure(click.ClickException):
    """An error of this package as a click exception, with its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click declares it for the class

    def show(self, file: Any = None) -> None:
        click.echo(click.style("error: ", fg="red") + self.format_message(), file=file, err=True)


class _Notes(logging.Handler):
    """Shows the package's warnings as notes, above a progress bar if one is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        from tqdm import tqdm

        tqdm.write(f"note: {record.getMessage()}", file=sys.stderr)


class _Group(click.Group):
    """Converts errors to messages and exit codes, and lists commands with whole sentences."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(_ALL)) for name, each in found.items() if each]
            )

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parses the command line; Ctrl-C meanwhile ends the program with 130, click's with 1."""
        try:
            return super().make_context(*args, **kwargs)
        except KeyboardInterrupt:
            _end_interrupted()

    def invoke(self, ctx: click.Context) -> Any:
        notes = _Notes(logging.WARNING)
        if not logger.handlers and not logging.getLogger().handlers:
            logger.addHandler(notes)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            if ctx.meta.get("traceback"):
                raise
            click.echo(" ".join(("Interrupted.", *error.args)), err=True)
            ctx.exit(130)
        except (OpError, ValueError, TypeError, OSError) as error:
            if ctx.meta.get("traceback") or isinstance(error, BrokenPipeError):
                raise
            if isinstance(error, UserError):
                raise Failure(str(error), error.exit_code) from error
            hint = "  (--traceback shows where it was raised)"
            raise Failure(f"{type(error).__name__}: {error}\n{hint}", 1) from error
        finally:
            logger.removeHandler(notes)


@dataclass(frozen=True)
class Invocation:
    """The configuration and overrides of the command line, for repetition in suggested commands."""

    config: str
    overrides: tuple[str, ...]
    model_dir: str | None

    def load(self) -> Experiment:
        """Loads the experiment."""
        from estimatorkit.experiment.load import load_experiment

        folder = Path(self.config)
        if (folder / "config.yaml").is_file():  # the folder of a run
            experiment = load_experiment(folder / "config.yaml", self.overrides)
            experiment = experiment.model_copy(update={"model_dir": self.config})
        else:
            experiment = load_experiment(self.config, self.overrides)
        if self.model_dir is not None:
            experiment = experiment.model_copy(update={"model_dir": self.model_dir})
        return experiment

    def again(self, command: str, *arguments: str) -> str:
        """A command line that runs another command on the same experiment, for display."""
        words = [*program(), command, self.config, *self.overrides]
        if self.model_dir is not None:
            words += ["--model-dir", self.model_dir]
        return shlex.join([*words, *arguments])


def program(name: str = "estimatorkit") -> list[str]:
    """How this program was started, as the user can type it again.

    Args:
        name: another program, which is installed beside it.
    """
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return ["python", "-m", "estimatorkit" if name == "estimatorkit" else f"{name}.main"]
    if started.name != "estimatorkit" or shutil.which(name):
        return [name]
    here = Path.cwd()
    absolute = started.absolute().with_name(name)
    return [str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)]


def _remember_traceback(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta["traceback"] = value


def on_experiment(function: Callable[..., None]) -> Callable[..., None]:
    """Adds CONFIG, KEY=VALUE, --set and so on to a command, as an `Invocation`."""

    @click.argument("config", metavar="CONFIG")
    @click.argument("changes", metavar="[KEY=VALUE]...", nargs=-1)
    @click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override a value, as in train.steps=200 (repeatable); the same as a bare KEY=VALUE.",
    )
    @click.option("--model-dir", metavar="FOLDER", help="Store the model in this folder instead.")
    @click.option(
        "--traceback",
        is_flag=True,
        expose_value=False,
        callback=_remember_traceback,
        is_eager=True,
        help="Show Python's traceback on errors.",
    )
    @functools.wraps(function)
    def command(
        config: str,
        changes: tuple[str, ...],
        overrides: tuple[str, ...],
        model_dir: str | None,
        **options: Any,
    ) -> None:
        function(Invocation(config, (*changes, *overrides), model_dir), **options)

    return command


def _on_earlier_run(function: Callable[..., None]) -> Callable[..., None]:
    """Adds --restart and --resume, as the argument `choice` of `earlier_run.reconcile`."""
    for choice, help_text in (
        ("resume", "Train on a model that was trained with other settings."),
        ("restart", "Train a new model, and keep the one in model_dir beside it."),
    ):
        function = click.option(f"--{choice}", "choice", flag_value=choice, help=help_text)(
            function
        )
    return function


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="estimatorkit", message="%(prog)s %(version)s")
def cli() -> None:
    """Train, evaluate and use a model described by a YAML file.

    \b
    Start with:
      estimatorkit run configs/iris_dnn.yaml
      estimatorkit run configs/iris_dnn.yaml train.steps=200
    """


@cli.command()
@click.argument("data", metavar="DATA", type=click.Path(path_type=Path))
@click.option("--label", metavar="COLUMN", help="The column to predict.")
@click.option(
    "-o",
    "--output",
    metavar="FILE.yaml",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write; by default named after DATA, in this folder.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--delimiter", metavar="CHAR", help="Between cells; found by looking unless given.")
@click.option("--encoding", metavar="NAME", help="Such as latin-1; found by looking unless given.")
@click.option("--decimal", type=click.Choice([".", ","]), help="The decimal sign of numbers.")
@click.option(
    "--header/--no-header", default=None, help="Whether the first line holds the columns' names."
)
@click.option(
    "--time",
    "seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="How long training may take on two cores; the estimator is chosen for it.",
)
@click.option(
    "--text",
    type=click.Choice(["hash", "embed", "drop"]),
    default="hash",
    show_default=True,
    help="What becomes of free text: counts of hashed words and pairs of words, an embedding of "
    "these, or nothing.",
)
def init(
    data: Path,
    label: str | None,
    output: Path | None,
    force: bool,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    header: bool | None,
    seconds: float,
    text: str,
) -> None:
    """Write a commented experiment that predicts a column of DATA (CSV, Parquet, JSON lines, Excel,
    SQLite or DuckDB).

    \b
    Example:
      estimatorkit init people.csv --label income
    """
    from estimatorkit.experiment import sniffing, starter

    path = output or Path(f"{data.name.split('.')[0]}.yaml")
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; --force replaces it")
    delimiter = "\t" if delimiter == r"\t" else delimiter
    if delimiter is not None and len(delimiter) != 1:
        raise click.UsageError(f"--delimiter {delimiter!r} is not one character (a tab: '\\t')")
    try:
        codecs.lookup(encoding or "utf-8")
    except LookupError as error:
        raise click.UsageError(f"--encoding: {error}; such as utf-8, latin-1, utf-16") from error
    given = sniffing.Given(delimiter, encoding, decimal, header)
    try:
        written = starter.starter(data, label, path, seconds, given, click.echo, text)
    except DataError as error:
        raise DataError(_without_keys(str(error))) from error
    path.write_text(written, encoding="utf-8")
    click.echo(f"The experiment is in {path}. Next:")
    click.echo(f"  {shlex.join([*program(), 'run', str(path)])}")


def _without_keys(message: str) -> str:
    """A message of reading, with options of `init` for keys of a file that is yet to be written."""
    message = message.replace("; in a configuration, relative to the YAML file's folder", "")
    return re.sub(r"\bencoding: '([^']*)'", r"--encoding \1", message)


@cli.command()
@on_experiment
@_on_earlier_run
def run(invocation: Invocation, choice: Choice | None) -> None:
    """Train, evaluate, export, and predict three samples.

    \b
    Example:
      estimatorkit run people.yaml train.steps=200
    """
    experiment = invocation.load()
    trained = train_experiment(experiment, choice)
    show_metrics(experiment, trained.metrics, trained)
    samples = _predict_samples(experiment)
    folder = shlex.quote(experiment.model_dir)
    click.echo(f"\nThe model is in {experiment.model_dir} (checkpoints, TensorBoard events).")
    click.echo("Next:")
    if samples is not None:
        click.echo(f"  {invocation.again('predict', '--input', str(samples))}")
    click.echo(f"  {invocation.again('show')}")
    for each in experiment.export:
        click.echo(f"  {shlex.join([*program(), 'serve'])} {folder}/export/{each.name}")
    click.echo(f"  {shlex.join(program('tensorboard'))} --logdir {folder}")
    if experiment.train.steps is not None and not experiment.estimator.reads_once:
        click.echo(
            f"Running it again trains {experiment.train.steps} steps more;"
            f" to start over: rm -r {folder}"
        )


@cli.command()
@on_experiment
@_on_earlier_run
def train(invocation: Invocation, choice: Choice | None) -> None:
    """Train from the latest checkpoint, and export.

    \b
    Example:
      estimatorkit train people.yaml --model-dir runs/second
    """
    experiment = invocation.load()
    train_experiment(experiment, choice)
    click.echo(f"The model is in {experiment.model_dir}.")
    click.echo(f"Next:\n  {invocation.again('evaluate')}")


@cli.command()
@on_experiment
def evaluate(invocation: Invocation) -> None:
    """Evaluate the latest checkpoint on the evaluation data.

    \b
    Example:
      estimatorkit evaluate people.yaml
    """
    from estimatorkit.experiment import runner

    experiment = invocation.load()
    show_metrics(experiment, runner.evaluate(experiment))


@cli.command()
@on_experiment
@click.option(
    "--input",
    "source",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A file of examples (CSV, Parquet, JSON lines, Excel, SQLite, DuckDB or TFRecord), read "
    "as the training data are.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the predictions to this CSV or Parquet file instead of printing a table.",
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="Keep a column of the input, too.")
@click.option("--explain", is_flag=True, help="Say what each column adds to each prediction.")
def predict(
    invocation: Invocation,
    source: Path,
    output: Path | None,
    keep: tuple[str, ...],
    explain: bool,
) -> None:
    """Predict for the examples in a file.

    CONFIG is a YAML file, the folder of a run, or an exported model.

    \b
    Example:
      estimatorkit predict runs/people --input new.csv --output predictions.csv
    """
    from estimatorkit.experiment import (
        examples,
        inferred,
        predicting,
        reading,
        report,
        tables,
    )

    export = predicting.export_in(Path(invocation.config))
    if export is not None:
        model, origin = predicting.of_export(export), reading.source_for(export, source)
    else:
        experiment = inferred.resolve(invocation.load())
        model = predicting.of_experiment(experiment)
        without = (*(experiment.data.label or ()), *experiment.negatives)
        like = experiment.data.as_read(experiment.data.train)
        origin = tables.source_of(source, like, without)
    writer = None if output is None else report.PredictionFile(output)
    done = 0
    with contextlib.ExitStack() as closing:
        for table in tables.read_chunks(origin):
            tables.require(table, keep, str(source), lambda table: table)
            kept = {name: table[name] for name in keep}
            found = kept | (model.explained if explain else model)(table, str(source))
            unused = () if export is not None else examples.unused_columns(experiment, table)
            if unused and not done:
                click.echo(f"note: {source}: columns not used: {', '.join(unused)}", err=True)
            if writer is None:
                lines = report.table_lines(predicting.without_explanation(found), done + 1)
                lines += report.explanation_lines(found, table, done + 1) if explain else []
                click.echo("\n".join(lines))
            elif not done:
                closing.enter_context(writer)
            if writer is not None:
                writer.write(found)
            done += tables.row_count(table)
    if output is not None:
        click.echo(f"{done} predictions are in {output}.")


@cli.command()
@on_experiment
def show(invocation: Invocation) -> None:
    """Print the complete configuration, including defaults, as YAML.

    \b
    Example:
      estimatorkit show people.yaml
    """
    from estimatorkit.experiment.load import dump_experiment

    click.echo(dump_experiment(invocation.load()), nl=False)


@cli.command()
def schema() -> None:
    """Print the JSON schema of configuration files, for editors.

    \b
    Example:
      estimatorkit schema > experiment.schema.json
    """
    import json

    from estimatorkit.experiment.schema import Experiment

    description = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    click.echo(json.dumps(description | Experiment.model_json_schema(), indent=2))


@cli.command("report")
@click.argument(
    "model_dir", metavar="MODEL_DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--experiment",
    "config",
    metavar="CONFIG",
    help="The configuration; by default the config.yaml in MODEL_DIR.",
)
@click.option(
    "--data",
    metavar="FILE.csv",
    type=click.Path(path_type=Path),
    help="Evaluate on these examples instead of the experiment's evaluation data.",
)
@click.option("--curves-only", is_flag=True, help="Plot learning curves only; do not evaluate.")
@click.option(
    "-o",
    "--output",
    metavar="FILE.html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The output file; by default report.html in MODEL_DIR.",
)
def report_(
    model_dir: Path, config: str | None, data: Path | None, curves_only: bool, output: Path | None
) -> None:
    """Write an HTML report of a trained model: curves, errors, importance, weights.

    Without a configuration, the report has learning curves and the model only.

    \b
    Example:
      estimatorkit report runs/people --data new.csv
    """
    from estimatorkit.experiment import report_html
    from estimatorkit.experiment.load import load_experiment

    kept = model_dir / "config.yaml"
    if config is None and kept.is_file():
        config = str(kept)
    path = output or model_dir / "report.html"
    if config is None and data is not None:
        raise click.UsageError(f"--data needs --experiment: there is no {kept}")
    try:
        if config is None or curves_only:
            report_html.write_report(model_dir, None, path)
        else:
            experiment = load_experiment(config)
            experiment = experiment.model_copy(update={"model_dir": str(model_dir)})
            report_html.write_experiment_report(experiment, path, data)
    except ImportError as error:  # matplotlib is an extra
        raise Failure(str(error), 1) from error
    click.echo(f"The report is in {path}.")


def train_experiment(experiment: Experiment, choice: Choice | None) -> Trained:
    """Announces the training and runs it; `choice`: see `earlier_run.reconcile`."""
    from estimatorkit.experiment import earlier_run, folds, tables

    kept = earlier_run.reconcile(experiment, choice or "ask")
    if kept is not None:
        click.echo(f"The earlier model is kept in {kept}.")
    settings = experiment.train
    length = f"{settings.steps} steps" if settings.steps else f"up to step {settings.max_steps}"
    if settings.epochs is not None:
        length = f"{settings.epochs:g} epochs"
    length += f", batches of {settings.batch_size}"
    if experiment.estimator.reads_once:
        length = "read once"
    source = tables.source_name(experiment.data.train)
    click.echo(f"Training {experiment.name} on {source}: {length}")
    try:
        return folds.train(experiment, _tell)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(_next_time(experiment, choice)) from error


def _next_time(experiment: Experiment, choice: Choice | None) -> str:
    """What the same command does after an interruption of the training."""
    from estimatorkit.storage.checkpoint import latest_checkpoint

    saved = latest_checkpoint(experiment.model_dir)
    if saved is None and experiment.evaluate.folds is not None:
        return "The same command goes on with the folds that are left."
    if saved is None or experiment.estimator.reads_once:
        return "The same command begins again."
    without = " without --restart" if choice == "restart" else ""
    return f"The same command{without} goes on from {saved}."


def _tell(text: str) -> None:
    """Prints a line, above a progress bar if one is shown."""
    from tqdm import tqdm

    tqdm.write(text, file=sys.stdout)


def show_metrics(
    experiment: Experiment,
    metrics: Mapping[str, Mapping[str, float]],
    trained: Trained | None = None,
) -> None:
    """Prints metrics and the threshold; after training, also how the checkpoint was chosen, and a
    baseline's scores.
    """
    from estimatorkit.experiment import folds, report, row_sets, thresholds

    threshold = thresholds.kept(experiment) if trained is None else trained.threshold
    validated = folds.read(experiment.model_dir) if experiment.evaluate.folds else None
    if validated is not None:
        click.echo("Cross-validation, mean ± standard deviation (of each fold):")
        click.echo("\n".join(validated.lines()))
    stopping, selection = experiment.train.early_stopping, experiment.selection
    judge = selection.metric if selection else stopping.metric if stopping else None
    for name, values in metrics.items():
        found = "" if trained is None else _chosen_by(experiment, name, trained)
        click.echo(f"Evaluation on {row_sets.evaluation_source(experiment, name)}{found}:")
        for line in report.metrics_lines(values):
            click.echo(line)
        if trained is not None:
            for line in report.baseline_lines(values, trained.baselines.get(name, {}), judge):
                click.echo(line)
        if name == row_sets.MAIN and threshold is not None:
            for line in threshold.lines:
                click.echo(f"  {line}")


def _chosen_by(experiment: Experiment, name: str, trained: Trained) -> str:
    """How the model was chosen that an evaluation is of."""
    from estimatorkit.experiment import row_sets
    from estimatorkit.experiment.estimators import Ensemble

    selection, kind = experiment.selection, experiment.estimator
    if not experiment.data.measures_apart:
        return ", on which the model was trained"
    if selection is None or experiment.evaluate.folds is not None:
        return ""
    if not kind.reads_once:
        end = f"the training ended at step {trained.last_step}"
        if selection.evaluation is None or name == selection.evaluation:
            return f" at the best {selection.metric} ({end})"
        return f", which did not choose the checkpoint ({end})"
    if not isinstance(kind, Ensemble) or name != row_sets.chosen_by(experiment):
        return ""
    if row_sets.trains_on_choice(experiment):
        return " (each predicted by the members that have not seen it)"
    chose = row_sets.selects_weights(experiment)
    return " (by these rows, epochs and weights of the members were chosen)" if chose else ""


def _predict_samples(experiment: Experiment) -> Path | None:
    """Predicts the first examples of the evaluation data, and writes them to a file.

    Returns:
        The file; None if the examples cannot be written as CSV, or would not be read as the
        training data are.
    """
    from estimatorkit.experiment import examples, report, row_sets, runner

    table, origin = row_sets.evaluation_table(experiment)
    table = table.take(slice(SAMPLES))
    labels = examples.labels_of(experiment, table, origin)
    expected = [None] * SAMPLES if labels is None else examples.label_names(experiment, labels)
    for prediction, label in zip(
        runner.predict(experiment, table, origin), expected, strict=labels is not None
    ):
        click.echo(report.sentence(prediction, label))
    source = experiment.data.train
    is_plain = getattr(source, "delimiter", ",") == "," and not getattr(source, "columns", None)
    if not is_plain or any(column.ndim > 1 for column in table.values()):
        return None
    path = Path(experiment.model_dir) / "samples.csv"
    hidden = experiment.data.label or ()
    report.write_table(path, {name: table[name] for name in table if name not in hidden})
    return path


def main() -> None:
    """The entry point of the console script."""
    try:
        cli(prog_name="estimatorkit")
    except KeyboardInterrupt:  # before a command begins
        _end_interrupted()


def _end_interrupted() -> NoReturn:
    click.echo("Interrupted.", err=True)
    sys.exit(130)
