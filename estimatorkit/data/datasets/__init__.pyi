from . import (
    abalone as abalone, automobile as automobile, california_housing as california_housing,
    census as census, criteo as criteo, digits as digits, fashion_mnist as fashion_mnist,
    iris as iris, mnist as mnist, movie_reviews as movie_reviews,
    movielens_100k as movielens_100k, movielens_1m as movielens_1m, text8 as text8,
)
from estimatorkit.data.datasets.all_data_sets import catalogue as catalogue
from estimatorkit.data.datasets.download import DataFile as DataFile, Downloader as Downloader
from estimatorkit.data.datasets.files import cache_folder as cache_folder, DataSet as DataSet
from estimatorkit.data.datasets.splits import (
    split_by_time as split_by_time, split_last as split_last, split_rows as split_rows,
)
