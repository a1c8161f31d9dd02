from estimatorkit.storage.gfile import (
    copy as copy, Copy as Copy, DeleteRecursively as DeleteRecursively, exists as exists,
    Exists as Exists, FastGFile as FastGFile, get_registered_schemes as get_registered_schemes,
    GFile as GFile, glob as glob, Glob as Glob, isdir as isdir, IsDirectory as IsDirectory,
    join as join, listdir as listdir, ListDirectory as ListDirectory, makedirs as makedirs,
    MakeDirs as MakeDirs, mkdir as mkdir, MkDir as MkDir, Open as Open, remove as remove,
    Remove as Remove, rename as rename, Rename as Rename, rmtree as rmtree, stat as stat,
    Stat as Stat, walk as walk, Walk as Walk,
)
