# %% DataFile
file = tf.datasets.catalogue()["mnist"].files[0]
assert isinstance(file, tf.datasets.DataFile)
file.name, file.size

# %% DataSet
data_set = tf.datasets.catalogue()["iris"]
assert isinstance(data_set, tf.datasets.DataSet)
print(data_set.title)
(features, labels), test = data_set.load()
features.head(2)

# %% Downloader
from pathlib import Path

downloader = tf.datasets.Downloader(attempts=2, timeout=10.0)
file = tf.datasets.DataFile("notes.txt", size=None, sha256=None)
try:
    downloader.fetch(file, Path("data/notes.txt"))
except tf.errors.NotFoundError as error:
    print(error)

# %% cache_folder
from unittest import mock

with mock.patch.dict("os.environ", {"ESTIMATORKIT_CACHE_DIR": "cache"}):
    print(tf.datasets.cache_folder())

# %% catalogue
{name: data_set.title for name, data_set in tf.datasets.catalogue().items()}

# %% split_by_time
import pandas as pd

ratings = pd.DataFrame({"user_id": [1, 1, 2, 2], "rating": [4, 5, 3, 1], "timestamp": [1, 4, 2, 3]})
train, test = tf.datasets.split_by_time(ratings, test_fraction=0.25)
train, test

# %% split_last
import pandas as pd

ratings = pd.DataFrame({"user_id": [1, 1, 2, 2], "rating": [4, 5, 3, 1], "timestamp": [1, 4, 2, 3]})
train, test = tf.datasets.split_last(ratings)
train, test

# %% split_rows
import pandas as pd

table = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "price": [10, 20, 30, None]})
(train_x, train_y), (test_x, test_y) = tf.datasets.split_rows(table, "price", seed=1)
len(train_x), test_x
