# %% array_to_img
pixels = np.array([[[0.0], [0.5]], [[0.5], [1.0]]])
picture = tf.keras.preprocessing.image.array_to_img(pixels)
print(picture.mode, picture.size)
np.array(picture)

# %% img_to_array
picture = tf.keras.preprocessing.image.array_to_img(np.eye(2)[..., None])
pixels = tf.keras.preprocessing.image.img_to_array(picture)
pixels.shape, pixels[..., 0]

# %% load_img
tf.keras.preprocessing.image.save_img("picture.png", np.ones([4, 6, 3]))
picture = tf.keras.preprocessing.image.load_img(
    "picture.png", color_mode="grayscale", target_size=(2, 3)
)
picture.mode, picture.size

# %% save_img
tf.keras.preprocessing.image.save_img("picture.png", np.ones([4, 6, 3]))
tf.keras.preprocessing.image.load_img("picture.png").size
