from . import fashion_mnist as fashion_mnist, mnist as mnist
