# %% adjoint
tf.linalg.adjoint(tf.constant([[1 + 2j, 3.0], [4.0, 5 - 6j]]))

# %% band_part
matrix = np.arange(1, 17).reshape(4, 4)
tf.linalg.band_part(matrix, num_lower=1, num_upper=0)

# %% cholesky
factor = tf.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
factor, tf.matmul(factor, factor, transpose_b=True)

# %% cholesky_solve
matrix = tf.constant([[4.0, 2.0], [2.0, 5.0]])
tf.linalg.cholesky_solve(tf.linalg.cholesky(matrix), [[8.0], [12.0]])

# %% cross
tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])

# %% det
tf.linalg.det([[[1.0, 2.0], [3.0, 4.0]], [[2.0, 0.0], [0.0, 3.0]]])

# %% diag
tf.linalg.diag([1, 2, 3]), tf.linalg.diag([8, 9], k=1)

# %% diag_part
matrix = np.arange(9).reshape(3, 3)
tf.linalg.diag_part(matrix), tf.linalg.diag_part(matrix, k=1)

# %% eigh
values, vectors = tf.linalg.eigh([[2.0, 1.0], [1.0, 2.0]])
values, vectors

# %% eigvalsh
tf.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]])

# %% einsum
matrix, vector = tf.constant([[1, 2], [3, 4]]), tf.constant([10, 100])
tf.linalg.einsum("ij,j->i", matrix, vector), tf.linalg.einsum("ij->ji", matrix)

# %% expm
rotation = tf.linalg.expm([[0.0, -np.pi / 2], [np.pi / 2, 0.0]])
tf.linalg.matvec(rotation, [1.0, 0.0])

# %% eye
tf.linalg.eye(2), tf.linalg.eye(2, 3, dtype=tf.int32)

# %% global_norm
gradients = [tf.constant([3.0]), None, tf.constant([[4.0, 12.0]])]
tf.linalg.global_norm(gradients)

# %% inv
matrix = tf.constant([[2.0, 0.0], [2.0, 4.0]])
inverse = tf.linalg.inv(matrix)
inverse, tf.matmul(matrix, inverse)

# %% logdet
tf.exp(tf.linalg.logdet([[4.0, 2.0], [2.0, 5.0]]))

# %% logm
matrix = tf.constant([[1.0 + 0j, 2.0], [0.0, 3.0]])
logarithm = tf.linalg.logm(matrix)
logarithm, tf.linalg.expm(logarithm)

# %% lstsq
times = tf.constant([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
intercept_and_slope = tf.linalg.lstsq(times, [[1.0], [3.0], [5.0]])
intercept_and_slope

# %% matmul
first, second = tf.constant([[1, 2], [3, 4]]), tf.constant([[1, 0], [1, 10]])
tf.linalg.matmul(first, second), tf.linalg.matmul(first, second, transpose_b=True)

# %% matrix_rank
tf.linalg.matrix_rank([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]])

# %% matrix_transpose
batch = np.arange(8).reshape(2, 2, 2)
tf.linalg.matrix_transpose(batch)

# %% matvec
tf.linalg.matvec([[1.0, 2.0], [3.0, 4.0]], [10.0, 100.0])

# %% norm
matrix = tf.constant([[3.0, 4.0], [0.0, 2.0]])
tf.linalg.norm(matrix, axis=1), tf.linalg.norm(matrix, ord=1, axis=1)

# %% normalize
unit, norm = tf.linalg.normalize([[3.0, 4.0], [0.0, 2.0]], axis=1)
unit, norm

# %% pinv
matrix = tf.constant([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
tf.linalg.pinv(matrix)

# %% qr
matrix = tf.constant([[3.0, 5.0], [4.0, 0.0]])
orthogonal, upper = tf.linalg.qr(matrix)
orthogonal, upper, tf.matmul(orthogonal, upper)

# %% set_diag
tf.linalg.set_diag(tf.ones([2, 3]), [5.0, 6.0])

# %% slogdet
sign, log_absolute = tf.linalg.slogdet([[0.0, 2.0], [3.0, 0.0]])
sign, tf.exp(log_absolute)

# %% solve
tf.linalg.solve([[3.0, 1.0], [1.0, 2.0]], [[9.0], [8.0]])

# %% sqrtm
root = tf.linalg.sqrtm([[33.0, 24.0], [48.0, 57.0]])
root, tf.matmul(root, root)

# %% svd
values, left, right = tf.linalg.svd([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
values, tf.matmul(left * values, right, transpose_b=True)

# %% tensor_diag
tf.linalg.tensor_diag([1, 2, 3])

# %% tensor_diag_part
tf.linalg.tensor_diag_part([[1, 2], [3, 4]])

# %% tensordot
matrix, vector = [[1.0, 2.0], [3.0, 4.0]], [10.0, 100.0]
tf.linalg.tensordot(matrix, vector, axes=1), tf.linalg.tensordot(matrix, matrix, axes=2)

# %% trace
tf.linalg.trace([[1.0, 2.0], [3.0, 4.0]])

# %% triangular_solve
tf.linalg.triangular_solve([[2.0, 9.0], [1.0, 4.0]], [[2.0], [9.0]])
