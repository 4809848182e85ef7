"""Draws small images of ten kinds of figures, for docs/data.md: a folder for each kind. Needs the Python package pillow.

    python3 examples/make_image_data.py

writes images/train/KIND/NUMBER.png and images/test/KIND/NUMBER.png.
"""

import argparse
import pathlib
import random

from PIL import Image, ImageDraw

SIDE = 32


def diamond(draw, box, colour):
    left, top, right, bottom = box
    x, y = (left + right) // 2, (top + bottom) // 2
    draw.polygon([(x, top), (right, y), (x, bottom), (left, y)], fill=colour)


def triangle(draw, box, colour):
    left, top, right, bottom = box
    draw.polygon([((left + right) // 2, top), (right, bottom), (left, bottom)], fill=colour)


def plus(draw, box, colour):
    left, top, right, bottom = box
    x, y = (left + right) // 2, (top + bottom) // 2
    draw.rectangle([x - 1, top, x + 1, bottom], fill=colour)
    draw.rectangle([left, y - 1, right, y + 1], fill=colour)


def cross(draw, box, colour):
    left, top, right, bottom = box
    draw.line([left, top, right, bottom], fill=colour, width=3)
    draw.line([left, bottom, right, top], fill=colour, width=3)


def rows(draw, box, colour):
    left, top, right, bottom = box
    for y in range(top, bottom + 1, 4):
        draw.rectangle([left, y, right, y + 1], fill=colour)


def columns(draw, box, colour):
    left, top, right, bottom = box
    for x in range(left, right + 1, 4):
        draw.rectangle([x, top, x + 1, bottom], fill=colour)


def dots(draw, box, colour):
    left, top, right, bottom = box
    for x in range(left, right + 1, 4):
        for y in range(top, bottom + 1, 4):
            draw.rectangle([x, y, x + 1, y + 1], fill=colour)


FIGURES = {
    "columns": columns, "cross": cross, "diamond": diamond, "dots": dots, "plus": plus, "rows": rows, "triangle": triangle,
    "disc": lambda draw, box, colour: draw.ellipse(box, fill=colour),
    "ring": lambda draw, box, colour: draw.ellipse(box, outline=colour, width=3),
    "square": lambda draw, box, colour: draw.rectangle(box, fill=colour),
}


def draw_image(kind, generator):
    """A figure of some size, place and colour on another colour, with noise."""
    back = [generator.randrange(0, 110) for _ in range(3)]
    colour = tuple(generator.randrange(140, 256) for _ in range(3))
    if generator.random() < 0.5:
        back, colour = list(colour), tuple(back)
    image = Image.new("RGB", (SIDE, SIDE), tuple(back))
    size = generator.randrange(14, 25)
    left, top = (generator.randrange(1, SIDE - size) for _ in range(2))
    FIGURES[kind](ImageDraw.Draw(image), [left, top, left + size - 1, top + size - 1], colour)
    noise = Image.frombytes("RGB", (SIDE, SIDE), generator.randbytes(3 * SIDE * SIDE))
    return Image.blend(image, noise, 0.15)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("images"), help="the folder to write to (default: images)")
    parser.add_argument("--train", type=int, default=200, metavar="N", help="images of each kind to train on (default: 200)")
    parser.add_argument("--test", type=int, default=20, metavar="N", help="images of each kind to evaluate on (default: 20)")
    arguments = parser.parse_args()
    generator = random.Random(0)
    for part, count in (("train", arguments.train), ("test", arguments.test)):
        for kind in sorted(FIGURES):
            folder = arguments.output / part / kind
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                draw_image(kind, generator).save(folder / f"{number:04d}.png")


if __name__ == "__main__":
    main()
