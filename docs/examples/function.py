# %% Defun
@tf.function.Defun(tf.float32, tf.float32)
def hypotenuse(x, y):
    return tf.sqrt(x**2 + y**2)


x = tf.constant(3.0)
length = hypotenuse(x, 4.0)
print(length.op.name)
length, tf.gradients(length, x)
