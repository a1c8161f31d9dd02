"""Other libraries' default models on one table: `python -m benchmarks.programs.tables_peers METHOD
TABLE SEED`; prints a JSON line.

No argument is set but the seed, the number of threads, and what silences or says which columns are
categories. Gaps and words are given as each library takes them.
"""

import numpy as np
import pandas as pd

from benchmarks.programs.tables_data import (
    CORES,
    Timer,
    answer,
    asked,
    parts,
    read,
    two_cores,
    words_of,
)


def linear(task, seed):
    """Logistic or ridge regression: standardized numbers, one-hot words, gaps as the median."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    prepared = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    # The default of 100 iterations does not converge on some of these tables.
    last = Ridge() if task == "regression" else LogisticRegression(max_iter=1000)
    return fitted(make_pipeline(prepared, last), task)


def hist_gradient_boosting(task, seed):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = chosen(task, HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    return with_categories(kind(random_state=seed), task, most=254)  # it takes no more


def lightgbm(task, seed):
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = chosen(task, LGBMClassifier, LGBMRegressor)
    return with_categories(kind(random_state=seed, n_jobs=CORES, verbosity=-1), task)


def xgboost(task, seed):
    from xgboost import XGBClassifier, XGBRegressor

    kind = chosen(task, XGBClassifier, XGBRegressor)
    model = kind(random_state=seed, n_jobs=CORES, enable_categorical=True)
    return with_categories(model, task)


def catboost(task, seed):
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = chosen(task, CatBoostClassifier, CatBoostRegressor)
    quiet = {"verbose": False, "allow_writing_files": False}

    def run(features, labels, tested):
        model = kind(random_seed=seed, thread_count=CORES, **quiet)
        words = words_of(features)
        model.fit(features.fillna(dict.fromkeys(words, "missing")), labels, cat_features=words)
        tested = tested.fillna(dict.fromkeys(words, "missing"))
        return predicted(model, task, tested)

    return run


def ydf(task, seed):
    import ydf

    kind = chosen(task, ydf.Task.CLASSIFICATION, ydf.Task.REGRESSION)
    ydf.verbose(0)

    def run(features, labels, tested):
        words = words_of(features)  # to it, an empty word is a gap
        features, tested = (
            each.fillna(dict.fromkeys(words, "")).astype(dict.fromkeys(words, object))
            for each in (features, tested)
        )
        model = ydf.GradientBoostedTreesLearner(
            label="the label", task=kind, random_seed=seed, num_threads=CORES
        ).train(features.assign(**{"the label": labels}))
        found = model.predict(tested)
        if task == "multiclass":
            return np.array(model.label_classes(), int)[found.argmax(axis=1)]
        return found

    return run


def realmlp(task, seed):
    from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor

    kind = chosen(task, RealMLP_TD_Classifier, RealMLP_TD_Regressor)
    return without_gaps(kind, task, seed)


def tabm(task, seed):
    from pytabkit import TabM_D_Classifier, TabM_D_Regressor

    return without_gaps(chosen(task, TabM_D_Classifier, TabM_D_Regressor), task, seed)


def chosen(task, classifier, regressor):
    return regressor if task == "regression" else classifier


def predicted(model, task, tested):
    """Numbers, probabilities of the last class, or the most probable class."""
    if task == "binary":
        return model.predict_proba(tested)[:, 1]
    return np.asarray(model.predict(tested)).reshape(-1)


def fitted(model, task):
    def run(features, labels, tested):
        return predicted(model.fit(features, labels), task, tested)

    return run


def with_categories(model, task, most=None):
    """A fit with words as pandas categories; a word that the fit has not seen is missing.

    Args:
        model: the model.
        task: the table's task.
        most: the number of categories of a column that the library takes; rarer ones are one.
    """

    def run(features, labels, tested):
        features, tested = features.copy(), tested.copy()
        for name in words_of(features):
            kept = features[name].value_counts().index
            if most is not None and len(kept) > most:
                kept = kept[: most - 1]
                for frame in (features, tested):
                    seen = frame[name].isna() | frame[name].isin(kept)
                    frame[name] = frame[name].where(seen, "other")
                kept = [*kept, "other"]
            of_column = pd.CategoricalDtype(sorted(kept))
            features[name] = features[name].astype(of_column)
            tested[name] = tested[name].where(tested[name].isin(kept)).astype(of_column)
        return predicted(model.fit(features, labels), task, tested)

    return run


def without_gaps(kind, task, seed):
    """A fit with gaps of numbers as the median, and a column more; words as categories."""

    def run(features, labels, tested):
        words = words_of(features)
        gaps = [name for name in features if name not in words and features[name].isna().any()]
        medians = features.drop(columns=words).median()
        ready = [
            each.assign(**{f"{name} missing": each[name].isna().astype(float) for name in gaps})
            .fillna(medians)
            .fillna(dict.fromkeys(words, "missing"))
            .astype(dict.fromkeys(words, "category"))
            for each in (features, tested)
        ]
        model = kind(random_state=seed, n_threads=CORES, device="cpu", verbosity=0)
        model.fit(ready[0], labels, cat_col_names=words)
        return predicted(model, task, ready[1])

    return run


METHODS = {
    "linear": (linear, ("scikit-learn",)),
    "HistGradientBoosting": (hist_gradient_boosting, ("scikit-learn",)),
    "LightGBM": (lightgbm, ("lightgbm",)),
    "XGBoost": (xgboost, ("xgboost",)),
    "CatBoost": (catboost, ("catboost",)),
    "YDF": (ydf, ("ydf",)),
    "RealMLP": (realmlp, ("pytabkit", "torch")),
    "TabM": (tabm, ("pytabkit", "torch")),
}


def main():
    two_cores()
    options = asked()
    make, packages = METHODS[options.method]
    table = read(options.table)
    features, labels, tested, truth = parts(table)
    run = make(table.task, options.seed)
    with Timer() as timer:
        found = run(features, labels, tested)
    answer(table, truth, found, timer, packages)


if __name__ == "__main__":
    main()
