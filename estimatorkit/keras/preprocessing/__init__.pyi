from . import image as image, sequence as sequence, text as text
