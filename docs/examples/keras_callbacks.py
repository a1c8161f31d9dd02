# %% BackupAndRestore
def interrupt(epoch, logs):
    raise KeyboardInterrupt


x, y = np.ones([8, 1]), np.ones([8, 1])
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[1])])
model.compile("sgd", "mse")
backup = tf.keras.callbacks.BackupAndRestore("backup")
stop = tf.keras.callbacks.LambdaCallback(on_epoch_end=interrupt)
try:
    model.fit(x, y, epochs=4, callbacks=[backup, stop], verbose=0)
except KeyboardInterrupt:
    print("interrupted")
model.fit(x, y, epochs=4, callbacks=[backup], verbose=0).epoch

# %% BaseLogger
x, y = np.ones([8, 1]), np.ones([8, 1])
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[1])])
model.compile("sgd", "mse")
logger = tf.keras.callbacks.BaseLogger()
history = model.fit(x, y, epochs=2, callbacks=[logger], verbose=0)
list(history.history)

# %% CSVLogger
x, y = np.ones([8, 1]), np.ones([8, 1])
layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
model = tf.keras.Sequential([layer])
model.compile("sgd", "mse")
logger = tf.keras.callbacks.CSVLogger("log.csv")
model.fit(x, y, epochs=3, callbacks=[logger], verbose=0)
print(tf.gfile.GFile("log.csv").read())


# %% Callback
class ShowLoss(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(epoch, logs)
        if logs["loss"] < 0.9:
            self.model.stop_training = True


x, y = np.ones([8, 1]), np.ones([8, 1])
layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
model = tf.keras.Sequential([layer])
model.compile("sgd", "mse")
model.fit(x, y, epochs=100, callbacks=[ShowLoss()], verbose=0).epoch

# %% CallbackList
show = tf.keras.callbacks.LambdaCallback(on_epoch_end=print)
callbacks = tf.keras.callbacks.CallbackList([show], add_history=True)
callbacks.on_train_begin()
callbacks.on_epoch_end(0, {"loss": 0.5})
callbacks.history.history

# %% EarlyStopping
x, y = np.ones([8, 1]), np.ones([8, 1])
layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
model = tf.keras.Sequential([layer])
model.compile("sgd", "mse")
stopping = tf.keras.callbacks.EarlyStopping("loss", min_delta=0.1, patience=2)
history = model.fit(x, y, epochs=100, callbacks=[stopping], verbose=0)
stopping.stopped_epoch, stopping.best_epoch, history.history["loss"][-1]

# %% History
x, y = np.ones([8, 1]), np.ones([8, 1])
layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
model = tf.keras.Sequential([layer])
model.compile("sgd", "mse")
history = model.fit(x, y, epochs=3, validation_data=(x, y), verbose=0)
assert isinstance(history, tf.keras.callbacks.History)
history.epoch, history.history

# %% LambdaCallback
x, y = np.ones([8, 1]), np.ones([8, 1])
layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
model = tf.keras.Sequential([layer])
model.compile("sgd", "mse")
callback = tf.keras.callbacks.LambdaCallback(
    on_train_begin=lambda logs: print("begin"),
    on_epoch_end=lambda epoch, logs: print(epoch, logs),
)
model.fit(x, y, epochs=2, callbacks=[callback], verbose=0).epoch

# %% LearningRateScheduler
x, y = np.ones([8, 1]), np.ones([8, 1])
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[1])])
model.compile("sgd", "mse")
scheduler = tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / 2**epoch)
model.fit(x, y, epochs=3, callbacks=[scheduler], verbose=0).history["lr"]

# %% ModelCheckpoint
x, y = np.ones([8, 1]), np.ones([8, 1])
layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
model = tf.keras.Sequential([layer])
model.compile("sgd", "mse")
checkpoint = tf.keras.callbacks.ModelCheckpoint("{epoch:02d}-{loss:.2f}.keras")
model.fit(x, y, epochs=2, callbacks=[checkpoint], verbose=0)
sorted(tf.gfile.ListDirectory("."))

# %% ProgbarLogger
x, y = np.ones([8, 1]), np.ones([8, 1])
layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
model = tf.keras.Sequential([layer])
model.compile("sgd", "mse")
logger = tf.keras.callbacks.ProgbarLogger("steps")
model.fit(x, y, epochs=2, callbacks=[logger], verbose=2).epoch

# %% ReduceLROnPlateau
x, y = np.ones([8, 1]), np.ones([8, 1])
layer = tf.keras.layers.Dense(1, kernel_initializer="ones")
model = tf.keras.Sequential([layer])
model.compile("sgd", "mse")
reduction = tf.keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2)
model.fit(x, y, epochs=6, callbacks=[reduction], verbose=0).history["lr"]

# %% RemoteMonitor
import http.server
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        print(self.path, self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()


with http.server.HTTPServer(("localhost", 0), Handler) as server:
    threading.Thread(target=server.handle_request).start()
    root = f"http://localhost:{server.server_port}"
    monitor = tf.keras.callbacks.RemoteMonitor(root, send_as_json=True)
    monitor.on_epoch_end(0, {"loss": 0.5})

# %% TensorBoard
x, y = np.ones([8, 1]), np.ones([8, 1])
layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
model = tf.keras.Sequential([layer])
model.compile("sgd", "mse")
board = tf.keras.callbacks.TensorBoard("board", write_graph=False)
model.fit(x, y, epochs=2, callbacks=[board], verbose=0)
events = tf.train.summary_iterator(tf.gfile.Glob("board/train/*")[0])
[(event.step, value.tag) for event in events for value in event.summary.value]

# %% TerminateOnNaN
x, y = np.array([[1.0], [np.inf], [1.0]]), np.ones([3, 1])
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[1])])
model.compile("sgd", "mse")
callback = tf.keras.callbacks.TerminateOnNaN()
model.fit(x, y, epochs=10, callbacks=[callback], verbose=0).epoch
