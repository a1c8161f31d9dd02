from . import scikit_learn as scikit_learn
