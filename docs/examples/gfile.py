# %% Copy
with tf.gfile.GFile("a.txt", "w") as file:
    file.write("text")
tf.gfile.Copy("a.txt", "b.txt")
tf.gfile.GFile("b.txt").read()

# %% DeleteRecursively
tf.gfile.MakeDirs("model/export")
tf.gfile.DeleteRecursively("model")
tf.gfile.Exists("model")

# %% Exists
tf.gfile.MakeDirs("model")
tf.gfile.Exists("model"), tf.gfile.Exists("missing")

# %% FastGFile
with tf.gfile.FastGFile("notes.txt", "w") as file:
    file.write("first\nsecond\n")
with tf.gfile.FastGFile("notes.txt") as file:
    print(file.size(), [line.strip() for line in file])

# %% Glob
for name in ("b.csv", "a.csv", "notes.txt"):
    with tf.gfile.GFile(name, "w") as file:
        file.write("text")
tf.gfile.Glob("*.csv")

# %% IsDirectory
tf.gfile.MakeDirs("model")
tf.gfile.IsDirectory("model"), tf.gfile.IsDirectory("missing")

# %% ListDirectory
tf.gfile.MakeDirs("model/export")
with tf.gfile.GFile("model/checkpoint", "w") as file:
    file.write("text")
tf.gfile.ListDirectory("model")

# %% MakeDirs
tf.gfile.MakeDirs("model/export/1")
tf.gfile.IsDirectory("model/export/1")

# %% MkDir
tf.gfile.MkDir("model")
tf.gfile.IsDirectory("model")

# %% Remove
with tf.gfile.GFile("a.txt", "w") as file:
    file.write("text")
tf.gfile.Remove("a.txt")
tf.gfile.Exists("a.txt")

# %% Rename
with tf.gfile.GFile("a.txt", "w") as file:
    file.write("text")
tf.gfile.Rename("a.txt", "b.txt")
tf.gfile.Glob("*.txt")

# %% Stat
with tf.gfile.GFile("a.txt", "w") as file:
    file.write("text")
statistics = tf.gfile.Stat("a.txt")
statistics.length, statistics.is_directory

# %% Walk
tf.gfile.MakeDirs("model/export")
with tf.gfile.GFile("model/export/a.txt", "w") as file:
    file.write("text")
list(tf.gfile.Walk("model"))

# %% copy
with tf.gfile.GFile("a.txt", "w") as file:
    file.write("new")
with tf.gfile.GFile("b.txt", "w") as file:
    file.write("old")
tf.gfile.copy("a.txt", "b.txt", overwrite=True)
tf.gfile.GFile("b.txt").read()

# %% exists
tf.gfile.makedirs("model")
tf.gfile.exists("model"), tf.gfile.exists("missing")

# %% get_registered_schemes
schemes = tf.gfile.get_registered_schemes()
[scheme for scheme in ("", "file", "memory", "unknown") if scheme in schemes]

# %% glob
for name in ("b.csv", "a.csv", "notes.txt"):
    with tf.gfile.GFile(name, "w") as file:
        file.write("text")
tf.gfile.glob(["*.csv", "*.txt"])

# %% isdir
with tf.gfile.GFile("a.txt", "w") as file:
    file.write("text")
tf.gfile.isdir("."), tf.gfile.isdir("a.txt")

# %% join
tf.gfile.join("model", "export", "1")

# %% listdir
tf.gfile.makedirs("model/export")
with tf.gfile.GFile("model/checkpoint", "w") as file:
    file.write("text")
tf.gfile.listdir("model")

# %% makedirs
tf.gfile.makedirs("model/export/1")
tf.gfile.isdir("model/export/1")

# %% mkdir
tf.gfile.mkdir("model")
try:
    tf.gfile.mkdir("missing/folder")
except tf.errors.NotFoundError:
    print("no such parent folder")
tf.gfile.listdir(".")

# %% remove
with tf.gfile.GFile("a.txt", "w") as file:
    file.write("text")
tf.gfile.remove("a.txt")
tf.gfile.exists("a.txt")

# %% rename
with tf.gfile.GFile("a.txt", "w") as file:
    file.write("text")
tf.gfile.rename("a.txt", "b.txt")
tf.gfile.listdir(".")

# %% rmtree
tf.gfile.makedirs("model/export")
tf.gfile.rmtree("model")
tf.gfile.exists("model")

# %% stat
with tf.gfile.GFile("a.txt", "w") as file:
    file.write("text")
statistics = tf.gfile.stat("a.txt")
statistics.length, statistics.is_directory

# %% walk
tf.gfile.makedirs("model/export")
with tf.gfile.GFile("model/export/a.txt", "w") as file:
    file.write("text")
for folder, subfolders, files in tf.gfile.walk("model"):
    print(folder, subfolders, files)
