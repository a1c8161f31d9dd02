"""`tf.image`: images as tensors `(height, width, channels)`, or batches of them."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_OPS = "estimatorkit.ops"
_PLACES = {
    **names(
        f"{_OPS}.image.files",
        "adjust_jpeg_quality decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg",
        "decode_png extract_jpeg_shape is_jpeg",
    ),
    **names(f"{_OPS}.image.encoding", "encode_jpeg encode_png"),
    **names(
        f"{_OPS}.image.resize",
        "ResizeMethod resize_area resize_bicubic resize_bilinear resize_images",
        "resize_image_with_pad resize_nearest_neighbor resize=resize_images",
        "resize_with_pad=resize_image_with_pad",
    ),
    **names(
        f"{_OPS}.image.shapes",
        "central_crop crop_to_bounding_box flip_left_right flip_up_down pad_to_bounding_box",
        "resize_image_with_crop_or_pad rot90 resize_with_crop_or_pad=resize_image_with_crop_or_pad",
        "transpose=transpose_image transpose_image=transpose_image",
    ),
    **names(
        f"{_OPS}.image.patches",
        "crop_and_resize extract_glimpse extract_image_patches extract_patches",
    ),
    **names(
        f"{_OPS}.image.color",
        "adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation",
        "convert_image_dtype grayscale_to_rgb hsv_to_rgb per_image_standardization",
        "rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv yiq_to_rgb yuv_to_rgb",
    ),
    **names(f"{_OPS}.array.random_draws", "random_crop"),
    **names(
        f"{_OPS}.image.random",
        "random_brightness random_contrast random_flip_left_right random_flip_up_down random_hue",
        "random_jpeg_quality random_saturation stateless_random_brightness",
        "stateless_random_contrast stateless_random_crop stateless_random_flip_left_right",
        "stateless_random_flip_up_down stateless_random_hue stateless_random_jpeg_quality",
        "stateless_random_saturation",
    ),
    **names(f"{_OPS}.image.boxes", "draw_bounding_boxes sample_distorted_bounding_box"),
    **names(
        f"{_OPS}.image.suppression",
        "combined_non_max_suppression non_max_suppression non_max_suppression_overlaps",
        "non_max_suppression_padded non_max_suppression_with_scores",
    ),
    **names(
        f"{_OPS}.image.measures",
        "image_gradients psnr sobel_edges ssim ssim_multiscale total_variation",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
