from . import experimental as experimental, export as export
from estimatorkit.data import inputs as inputs
from estimatorkit.estimator.estimator import Estimator as Estimator
from estimatorkit.estimator.spec import EstimatorSpec as EstimatorSpec, ModeKeys as ModeKeys
from estimatorkit.estimator.run_config import RunConfig as RunConfig
from estimatorkit.estimator.warm_starting import WarmStartSettings as WarmStartSettings
from estimatorkit.train.saving.vocabulary_change import VocabInfo as VocabInfo
from estimatorkit.estimator.keras_estimator import model_to_estimator as model_to_estimator
from estimatorkit.estimator.serving.predictor import load_predictor as load_predictor
from estimatorkit.estimator.serving.onnx_export import export_onnx as export_onnx
from estimatorkit.estimator.train_spec import EvalSpec as EvalSpec, TrainSpec as TrainSpec
from estimatorkit.estimator.training_and_evaluation import train_and_evaluate as train_and_evaluate
from estimatorkit.estimator.serving.exporters import (
    BestExporter as BestExporter, Exporter as Exporter, FinalExporter as FinalExporter,
    LatestExporter as LatestExporter,
)
from estimatorkit.estimator.evaluation.early_stopping import EarlyStopping as EarlyStopping
from estimatorkit.estimator.evaluation.experiment_trackers import (
    MLflowHook as MLflowHook, WandbHook as WandbHook,
)
from estimatorkit.estimator.extenders import add_metrics as add_metrics
from estimatorkit.train import (
    CheckpointSaverHook as CheckpointSaverHook, CheckpointSaverListener as CheckpointSaverListener,
    FeedFnHook as FeedFnHook, FinalOpsHook as FinalOpsHook,
    GlobalStepWaiterHook as GlobalStepWaiterHook, LoggingTensorHook as LoggingTensorHook,
    NanLossDuringTrainingError as NanLossDuringTrainingError, NanTensorHook as NanTensorHook,
    ProfilerHook as ProfilerHook, SecondOrStepTimer as SecondOrStepTimer,
    SessionRunArgs as SessionRunArgs, SessionRunContext as SessionRunContext,
    SessionRunHook as SessionRunHook, SessionRunValues as SessionRunValues,
    StepCounterHook as StepCounterHook, StopAtStepHook as StopAtStepHook,
    SummarySaverHook as SummarySaverHook,
)
from estimatorkit.premade.dnn import (
    DNNClassifier as DNNClassifier, DNNEstimator as DNNEstimator, DNNRegressor as DNNRegressor,
)
from estimatorkit.premade.linear import (
    LinearClassifier as LinearClassifier, LinearEstimator as LinearEstimator,
    LinearRegressor as LinearRegressor,
)
from estimatorkit.premade.dnn_linear_combined import (
    DNNLinearCombinedClassifier as DNNLinearCombinedClassifier,
    DNNLinearCombinedEstimator as DNNLinearCombinedEstimator,
    DNNLinearCombinedRegressor as DNNLinearCombinedRegressor,
)
from estimatorkit.premade.baseline import (
    BaselineClassifier as BaselineClassifier, BaselineEstimator as BaselineEstimator,
    BaselineRegressor as BaselineRegressor,
)
from estimatorkit.premade.ensemble import (
    EnsembleClassifier as EnsembleClassifier, EnsembleRegressor as EnsembleRegressor,
)
from estimatorkit.premade.tabular import (
    TabularClassifier as TabularClassifier, TabularEstimator as TabularEstimator,
    TabularRegressor as TabularRegressor,
)
from estimatorkit.premade.boosted_trees import (
    BoostedTreesClassifier as BoostedTreesClassifier,
    BoostedTreesEstimator as BoostedTreesEstimator,
    BoostedTreesRegressor as BoostedTreesRegressor,
)
from estimatorkit.recommend.two_tower import TwoTower as TwoTower
from estimatorkit.recommend.candidates import export_candidates as export_candidates
from estimatorkit.recommend.retrieval_head import RetrievalHead as RetrievalHead
from estimatorkit.recommend.din import DIN as DIN
from estimatorkit.recommend.dien import DIEN as DIEN
from estimatorkit.recommend.mmoe import MMoE as MMoE
from estimatorkit.recommend.ple import PLE as PLE
from estimatorkit.recommend.esmm import ESMM as ESMM
from estimatorkit.recommend.autoint import AutoInt as AutoInt
from estimatorkit.recommend.dcn import DCN as DCN
from estimatorkit.recommend.deepfm import DeepFM as DeepFM
from estimatorkit.recommend.fibinet import FiBiNET as FiBiNET
from estimatorkit.recommend.xdeepfm import xDeepFM as xDeepFM
from estimatorkit.premade.head import Head as Head
from estimatorkit.premade.classification_heads import (
    BinaryClassHead as BinaryClassHead, MultiClassHead as MultiClassHead,
)
from estimatorkit.premade.decision import with_threshold as with_threshold
from estimatorkit.premade.multi_label_head import MultiLabelHead as MultiLabelHead
from estimatorkit.premade.multi_head import MultiHead as MultiHead
from estimatorkit.premade.regression_head import (
    LogisticRegressionHead as LogisticRegressionHead,
    PoissonRegressionHead as PoissonRegressionHead, RegressionHead as RegressionHead,
)
from estimatorkit.layers.feature_column.parse_spec import (
    classifier_parse_example_spec as classifier_parse_example_spec,
    regressor_parse_example_spec as regressor_parse_example_spec,
)
