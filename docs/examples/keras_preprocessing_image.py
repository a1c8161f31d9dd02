# %% array_to_img
picture = tf.keras.preprocessing.image.array_to_img(np.ones([4, 6, 3]))
picture.size, picture.mode

# %% img_to_array
picture = tf.keras.preprocessing.image.array_to_img(np.ones([4, 6, 3]))
tf.keras.preprocessing.image.img_to_array(picture).shape

# %% load_img
tf.keras.preprocessing.image.save_img("picture.png", np.ones([4, 6, 3]))
tf.keras.preprocessing.image.load_img("picture.png", target_size=(2, 3)).size

# %% save_img
tf.keras.preprocessing.image.save_img("picture.png", np.ones([4, 6, 3]))
tf.keras.preprocessing.image.load_img("picture.png").size
