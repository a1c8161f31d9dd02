from estimatorkit.ops.image.files import (
    adjust_jpeg_quality as adjust_jpeg_quality, decode_and_crop_jpeg as decode_and_crop_jpeg,
    decode_bmp as decode_bmp, decode_gif as decode_gif, decode_image as decode_image,
    decode_jpeg as decode_jpeg, decode_png as decode_png, extract_jpeg_shape as extract_jpeg_shape,
    is_jpeg as is_jpeg,
)
from estimatorkit.ops.image.encoding import encode_jpeg as encode_jpeg, encode_png as encode_png
from estimatorkit.ops.image.resize import (
    resize_area as resize_area, resize_bicubic as resize_bicubic,
    resize_bilinear as resize_bilinear, resize_image_with_pad as resize_image_with_pad,
    resize_images as resize_images, resize_nearest_neighbor as resize_nearest_neighbor,
    ResizeMethod as ResizeMethod,
)
from estimatorkit.ops.image.shapes import (
    central_crop as central_crop, crop_to_bounding_box as crop_to_bounding_box,
    flip_left_right as flip_left_right, flip_up_down as flip_up_down,
    pad_to_bounding_box as pad_to_bounding_box,
    resize_image_with_crop_or_pad as resize_image_with_crop_or_pad, rot90 as rot90,
    transpose_image as transpose_image,
)
from estimatorkit.ops.image.color import (
    adjust_brightness as adjust_brightness, adjust_contrast as adjust_contrast,
    adjust_gamma as adjust_gamma, adjust_hue as adjust_hue, adjust_saturation as adjust_saturation,
    convert_image_dtype as convert_image_dtype, grayscale_to_rgb as grayscale_to_rgb,
    hsv_to_rgb as hsv_to_rgb, per_image_standardization as per_image_standardization,
    rgb_to_grayscale as rgb_to_grayscale, rgb_to_hsv as rgb_to_hsv, rgb_to_yiq as rgb_to_yiq,
    rgb_to_yuv as rgb_to_yuv, yiq_to_rgb as yiq_to_rgb, yuv_to_rgb as yuv_to_rgb,
)
from estimatorkit.ops.array.random_draws import random_crop as random_crop
from estimatorkit.compat.names.image import *

resize = resize_images
resize_with_pad = resize_image_with_pad
resize_with_crop_or_pad = resize_image_with_crop_or_pad
transpose = transpose_image
