from estimatorkit.compat.ops.image.patches import (
    crop_and_resize as crop_and_resize, extract_glimpse as extract_glimpse,
    extract_image_patches as extract_image_patches, extract_patches as extract_patches,
)
from estimatorkit.compat.ops.image.random import (
    random_brightness as random_brightness, random_contrast as random_contrast,
    random_flip_left_right as random_flip_left_right, random_flip_up_down as random_flip_up_down,
    random_hue as random_hue, random_jpeg_quality as random_jpeg_quality,
    random_saturation as random_saturation,
    stateless_random_brightness as stateless_random_brightness,
    stateless_random_contrast as stateless_random_contrast,
    stateless_random_crop as stateless_random_crop,
    stateless_random_flip_left_right as stateless_random_flip_left_right,
    stateless_random_flip_up_down as stateless_random_flip_up_down,
    stateless_random_hue as stateless_random_hue,
    stateless_random_jpeg_quality as stateless_random_jpeg_quality,
    stateless_random_saturation as stateless_random_saturation,
)
from estimatorkit.compat.ops.image.boxes import (
    draw_bounding_boxes as draw_bounding_boxes,
    sample_distorted_bounding_box as sample_distorted_bounding_box,
)
from estimatorkit.compat.ops.image.suppression import (
    combined_non_max_suppression as combined_non_max_suppression,
    non_max_suppression as non_max_suppression,
    non_max_suppression_overlaps as non_max_suppression_overlaps,
    non_max_suppression_padded as non_max_suppression_padded,
    non_max_suppression_with_scores as non_max_suppression_with_scores,
)
from estimatorkit.compat.ops.image.measures import (
    image_gradients as image_gradients, psnr as psnr, sobel_edges as sobel_edges, ssim as ssim,
    ssim_multiscale as ssim_multiscale, total_variation as total_variation,
)
