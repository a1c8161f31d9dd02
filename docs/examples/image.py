# %% ResizeMethod
tf.image.ResizeMethod.BILINEAR, tf.image.ResizeMethod.BICUBIC

# %% adjust_brightness
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.adjust_brightness(image, delta=0.1)

# %% adjust_contrast
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.adjust_contrast(image, contrast_factor=2.0)

# %% adjust_gamma
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.adjust_gamma(image, gamma=2.0)

# %% adjust_hue
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.adjust_hue(image, delta=0.5)

# %% adjust_jpeg_quality
image = tf.reshape(tf.linspace(0.0, 1.0, 64), [8, 8, 1])
fine = tf.image.adjust_jpeg_quality(image, 95)
coarse = tf.image.adjust_jpeg_quality(image, 5)
errors = [tf.reduce_mean(tf.abs(each - image)) for each in (fine, coarse)]
errors[0] < errors[1]

# %% adjust_saturation
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.adjust_saturation(image, saturation_factor=0.5)

# %% central_crop
image = tf.reshape(tf.range(16), [4, 4, 1])
tf.image.central_crop(image, central_fraction=0.5)[:, :, 0]

# %% combined_non_max_suppression
boxes = tf.constant([[[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.0, 0.9, 1.0]]]])
scores = tf.constant([[[0.9], [0.8]]])
found = tf.image.combined_non_max_suppression(boxes, scores, 2, 2)
boxes, scores, classes, counts = found
scores, counts

# %% convert_image_dtype
image = tf.constant([[[255, 0, 0], [0, 128, 255]]], tf.uint8)
tf.image.convert_image_dtype(image, tf.float32)

# %% crop_and_resize
images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
crops = tf.image.crop_and_resize(images, [[0.0, 0.0, 1.0, 1.0]], [0], [2, 2])
crops[0, :, :, 0]

# %% crop_to_bounding_box
image = tf.reshape(tf.range(16), [4, 4, 1])
tf.image.crop_to_bounding_box(image, 0, 1, 2, 2)[:, :, 0]

# %% decode_and_crop_jpeg
image = tf.constant(np.full([4, 6, 3], 128, np.uint8))
contents = tf.image.encode_jpeg(image)
tf.shape(tf.image.decode_and_crop_jpeg(contents, [0, 0, 2, 3]))

# %% decode_bmp
from PIL import Image

Image.fromarray(np.full([4, 6, 3], 128, np.uint8)).save("picture.bmp")
tf.shape(tf.image.decode_bmp(tf.read_file("picture.bmp")))

# %% decode_gif
from PIL import Image

Image.fromarray(np.full([4, 6, 3], 128, np.uint8)).save("picture.gif")
tf.shape(tf.image.decode_gif(tf.read_file("picture.gif")))

# %% decode_image
image = tf.constant(np.full([4, 6, 3], 128, np.uint8))
tf.shape(tf.image.decode_image(tf.image.encode_png(image)))

# %% decode_jpeg
image = tf.constant(np.full([4, 6, 3], 128, np.uint8))
tf.shape(tf.image.decode_jpeg(tf.image.encode_jpeg(image)))

# %% decode_png
image = tf.constant(np.full([4, 6, 3], 128, np.uint8))
tf.shape(tf.image.decode_png(tf.image.encode_png(image), channels=1))

# %% draw_bounding_boxes
images = tf.zeros([1, 4, 4, 3])
boxes = [[[0.25, 0.25, 0.75, 0.75]]]
tf.image.draw_bounding_boxes(images, boxes, colors=[[1.0, 0.0, 0.0]])[0, :, :, 0]

# %% encode_jpeg
image = tf.constant(np.full([4, 6, 3], 128, np.uint8))
tf.image.is_jpeg(tf.image.encode_jpeg(image, quality=90))

# %% encode_png
image = tf.constant(np.full([4, 6, 3], 128, np.uint8))
tf.strings.substr(tf.image.encode_png(image), 1, 3)

# %% extract_glimpse
images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
tf.image.extract_glimpse(images, [2, 2], [[0.0, 0.0]])[0, :, :, 0]

# %% extract_image_patches
images = tf.reshape(tf.range(16), [1, 4, 4, 1])
twos = [1, 2, 2, 1]
patches = tf.image.extract_image_patches(images, twos, twos, [1, 1, 1, 1], "VALID")
patches[0, 0]

# %% extract_jpeg_shape
image = tf.constant(np.full([4, 6, 3], 128, np.uint8))
tf.image.extract_jpeg_shape(tf.image.encode_jpeg(image))

# %% extract_patches
images = tf.reshape(tf.range(16), [1, 4, 4, 1])
twos = [1, 2, 2, 1]
patches = tf.image.extract_patches(images, twos, twos, [1, 1, 1, 1], "VALID")
patches[0, 0]

# %% flip_left_right
image = tf.reshape(tf.range(4), [2, 2, 1])
tf.image.flip_left_right(image)[:, :, 0]

# %% flip_up_down
image = tf.reshape(tf.range(4), [2, 2, 1])
tf.image.flip_up_down(image)[:, :, 0]

# %% grayscale_to_rgb
tf.image.grayscale_to_rgb([[[0.5], [1.0]]])

# %% hsv_to_rgb
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(image))

# %% image_gradients
images = tf.reshape(tf.range(4.0), [1, 2, 2, 1])
down, across = tf.image.image_gradients(images)
down[0, :, :, 0], across[0, :, :, 0]

# %% is_jpeg
image = tf.constant(np.full([4, 6, 3], 128, np.uint8))
jpeg, png = tf.image.encode_jpeg(image), tf.image.encode_png(image)
tf.image.is_jpeg(jpeg), tf.image.is_jpeg(png)

# %% non_max_suppression
boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.9, 1.0], [0.0, 2.0, 1.0, 3.0]]
scores = [0.9, 0.8, 0.7]
tf.image.non_max_suppression(boxes, scores, max_output_size=3)

# %% non_max_suppression_overlaps
overlaps = [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]]
tf.image.non_max_suppression_overlaps(overlaps, [0.9, 0.8, 0.7], max_output_size=3)

# %% non_max_suppression_padded
boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.9, 1.0], [0.0, 2.0, 1.0, 3.0]]
scores = [0.9, 0.8, 0.7]
tf.image.non_max_suppression_padded(boxes, scores, max_output_size=3, pad_to_max_output_size=True)

# %% non_max_suppression_with_scores
boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.9, 1.0], [0.0, 2.0, 1.0, 3.0]]
scores = [0.9, 0.8, 0.7]
tf.image.non_max_suppression_with_scores(boxes, scores, max_output_size=3, soft_nms_sigma=0.5)

# %% pad_to_bounding_box
image = tf.ones([1, 2, 1], tf.int32)
tf.image.pad_to_bounding_box(image, 1, 0, 3, 3)[:, :, 0]

# %% per_image_standardization
tf.image.per_image_standardization([[[1.0], [3.0]]])

# %% psnr
one, other = tf.zeros([16, 16, 1]), tf.fill([16, 16, 1], 0.1)
tf.image.psnr(one, other, max_val=1.0)

# %% random_brightness
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.random_brightness(image, 0.2, seed=1)

# %% random_contrast
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.random_contrast(image, 0.5, 1.5, seed=1)

# %% random_crop
image = tf.reshape(tf.range(16), [4, 4, 1])
tf.image.random_crop(image, [2, 2, 1], seed=1)[:, :, 0]

# %% random_flip_left_right
image = tf.reshape(tf.range(4), [2, 2, 1])
tf.image.random_flip_left_right(image, seed=2)[:, :, 0]

# %% random_flip_up_down
image = tf.reshape(tf.range(4), [2, 2, 1])
tf.image.random_flip_up_down(image, seed=2)[:, :, 0]

# %% random_hue
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.random_hue(image, 0.2, seed=1)

# %% random_jpeg_quality
image = tf.random.uniform([8, 8, 3], seed=1)
tf.image.random_jpeg_quality(image, 50, 90, seed=1).shape

# %% random_saturation
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.random_saturation(image, 0.5, 1.0, seed=2)

# %% resize
images = tf.reshape(tf.range(4.0), [1, 2, 2, 1])
tf.image.resize(images, [2, 4])[0, :, :, 0]

# %% resize_area
images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
tf.image.resize_area(images, [2, 2])[0, :, :, 0]

# %% resize_bicubic
images = tf.reshape(tf.range(4.0), [1, 2, 2, 1])
tf.image.resize_bicubic(images, [2, 4])[0, :, :, 0]

# %% resize_bilinear
images = tf.reshape(tf.range(4.0), [1, 2, 2, 1])
tf.image.resize_bilinear(images, [2, 4])[0, :, :, 0]

# %% resize_image_with_crop_or_pad
image = tf.reshape(tf.range(4), [2, 2, 1])
tf.image.resize_image_with_crop_or_pad(image, 3, 1)[:, :, 0]

# %% resize_image_with_pad
images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
tf.image.resize_image_with_pad(images, 2, 4)[0, :, :, 0]

# %% resize_nearest_neighbor
images = tf.reshape(tf.range(4.0), [1, 2, 2, 1])
tf.image.resize_nearest_neighbor(images, [2, 4])[0, :, :, 0]

# %% rgb_to_grayscale
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.rgb_to_grayscale(image)

# %% rgb_to_hsv
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.rgb_to_hsv(image)

# %% rgb_to_yiq
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.rgb_to_yiq(image)

# %% rgb_to_yuv
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.rgb_to_yuv(image)

# %% rot90
image = tf.reshape(tf.range(4), [2, 2, 1])
tf.image.rot90(image)[:, :, 0]

# %% sample_distorted_bounding_box
begin, size, boxes = tf.image.sample_distorted_bounding_box(
    [10, 10, 3], [[[0.1, 0.1, 0.9, 0.9]]], seed=1
)
begin.shape, size.shape, boxes.shape

# %% sobel_edges
images = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
tf.image.sobel_edges(images)[0, :, :, 0, 0]

# %% ssim
one, other = tf.zeros([16, 16, 1]), tf.fill([16, 16, 1], 0.1)
tf.image.ssim(one, other, max_val=1.0)

# %% ssim_multiscale
one = tf.random.uniform([1, 176, 176, 1], seed=1)
tf.image.ssim_multiscale(one, one * 0.9, max_val=1.0)

# %% stateless_random_brightness
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.stateless_random_brightness(image, 0.2, seed=[1, 2])

# %% stateless_random_contrast
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.stateless_random_contrast(image, 0.5, 1.5, seed=[1, 2])

# %% stateless_random_crop
image = tf.reshape(tf.range(16), [4, 4, 1])
tf.image.stateless_random_crop(image, [2, 2, 1], seed=[1, 2])[:, :, 0]

# %% stateless_random_flip_left_right
image = tf.reshape(tf.range(4), [2, 2, 1])
tf.image.stateless_random_flip_left_right(image, seed=[1, 0])[:, :, 0]

# %% stateless_random_flip_up_down
image = tf.reshape(tf.range(4), [2, 2, 1])
tf.image.stateless_random_flip_up_down(image, seed=[1, 0])[:, :, 0]

# %% stateless_random_hue
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.stateless_random_hue(image, 0.2, seed=[1, 2])

# %% stateless_random_jpeg_quality
image = tf.ones([8, 8, 3])
tf.shape(tf.image.stateless_random_jpeg_quality(image, 50, 90, seed=[1, 2]))

# %% stateless_random_saturation
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.stateless_random_saturation(image, 0.5, 1.0, seed=[1, 2])

# %% total_variation
tf.image.total_variation([[[1.0], [3.0]], [[1.0], [0.0]]])

# %% transpose
image = tf.reshape(tf.range(4), [2, 2, 1])
tf.image.transpose(image)[:, :, 0]

# %% yiq_to_rgb
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.yiq_to_rgb(tf.image.rgb_to_yiq(image))

# %% yuv_to_rgb
image = tf.constant([[[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]])
tf.image.yuv_to_rgb(tf.image.rgb_to_yuv(image))
