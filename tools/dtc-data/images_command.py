"""dtc-data images: folders of images to samples of images and their classes."""

import array
import concurrent.futures
import json
import os
import pathlib
import re
import struct

from problem import Problem
from progress import Progress
from token_file import little_endian, write_renamed

SUFFIXES = (".png", ".jpg", ".jpeg")
# By --channels: Pillow's mode.
MODES = {1: "L", 3: "RGB"}
# The number of images for each thread that are read together.
IMAGES_OF_THREAD = 8


def add_arguments(parser):
    parser.add_argument("folder", metavar="FOLDER",
                        help="a folder with one folder for each class, and in each PNG and JPEG files")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.safetensors",
                        help="the samples: images, f32 [samples, channels, height, width], and labels, i32 [samples]; the "
                             "names of the classes are written to FILE.classes.json")
    parser.add_argument("--size", default="224", metavar="N",
                        help="to what images are resized, as N or HEIGHTxWIDTH (default: 224)")
    parser.add_argument("--channels", type=int, choices=MODES, default=3, help="3 for colours, 1 for gray (default: 3)")
    parser.add_argument("--mean", type=float, nargs="+", default=[0.5], metavar="X",
                        help="what is subtracted from values between 0 and 1, one for all channels or one for each "
                             "(default: 0.5)")
    parser.add_argument("--std", type=float, nargs="+", default=[0.5], metavar="X",
                        help="what they are then divided by, likewise (default: 0.5)")
    parser.add_argument("--classes", metavar="FILE.classes.json",
                        help="number the classes as this file does, such as that of the training data for data to evaluate on "
                             "(default: the folders, sorted by name)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads that read images (default: one a core)")


def import_pillow():
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError as error:
        raise Problem(f"the Python package pillow cannot be imported ({error}); install it, such as by: "
                      "python3 -m pip install pillow") from error
    return PIL


def read_size(text):
    """Height and width."""
    match = re.fullmatch(r"([1-9]\d{0,5})(?:x([1-9]\d{0,5}))?", text)
    if not match:
        raise Problem(f"--size is {text}, expected a number such as 224, or a height and a width such as 224x192")
    return int(match[1]), int(match[2] or match[1])


def of_channels(flag, values, channels):
    """A value for each channel."""
    if len(values) not in (1, channels):
        raise Problem(f"{flag} has {len(values)} numbers, expected one, or one for each of the {channels} channels")
    return values * (channels if len(values) == 1 else 1)


def read_classes(path):
    """The names in a file that write_classes has written."""
    try:
        names = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["id2label"]
        return [names[str(number)] for number in range(len(names))]
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Problem(f'{path}: expected an object with "id2label", the name of each class by its number from 0 on, as '
                      "dtc-data images writes it") from error


def classes_path(output):
    return f"{output.removesuffix('.safetensors')}.classes.json"


def write_classes(path, names):
    """As transformers' configurations name classes."""
    text = json.dumps({"id2label": {str(number): name for number, name in enumerate(names)},
                       "label2id": {name: number for number, name in enumerate(names)}}, indent=1, ensure_ascii=False)
    write_renamed(path, (text + "\n").encode())


def find_classes(options):
    """The names of the classes, in the order of their numbers."""
    folder = pathlib.Path(options.folder)
    if not folder.is_dir():
        raise Problem(f"{folder}: expected a folder, with one folder for each class")
    found = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if not found:
        raise Problem(f"{folder} has no folders, expected one for each class")
    if options.classes is None:
        return found
    names = read_classes(options.classes)
    for name in found:
        if name not in names:
            raise Problem(f'{folder / name}: {options.classes} has no class "{name}"; its classes are {", ".join(names)}')
    return names


def find_images(options, names):
    """The files and the numbers of their classes, and how many other files there are."""
    files, others = [], 0
    for number, name in enumerate(names):
        folder = pathlib.Path(options.folder, name)
        entries = sorted(folder.iterdir()) if folder.is_dir() else []  # of a class that --classes alone knows
        images = [entry for entry in entries if entry.suffix.lower() in SUFFIXES and not entry.name.startswith(".")]
        if entries and not images:
            raise Problem(f"{folder} has no PNG or JPEG files ({', '.join(SUFFIXES)})")
        if not entries and options.classes is None:
            raise Problem(f"{folder} is empty; remove it, or put images of its class there")
        files += [(image, number) for image in images]
        others += len(entries) - len(images)
    return files, others


class ImageReader:
    """Makes of a file the values of an image that transformers' ViTImageProcessor makes of it: resized with bilinear
    interpolation, divided by 255, less the mean, divided by the standard deviation; each step rounded to f32."""

    def __init__(self, options):
        self.pillow = import_pillow()
        self.height, self.width = read_size(options.size)
        self.channels = options.channels
        mean = of_channels("--mean", options.mean, self.channels)
        std = of_channels("--std", options.std, self.channels)
        if not all(value > 0 for value in std):
            raise Problem(f"--std is {' '.join(map(str, options.std))}, expected numbers greater than 0")
        # There are but 256 values before all of this.
        self.tables = [[as_f32(as_f32(as_f32(value * (1 / 255)) - as_f32(m)) / as_f32(s)) for value in range(256)]
                       for m, s in zip(mean, std)]

    @property
    def elements(self):
        return self.channels * self.height * self.width

    def read(self, path):
        """The bytes of f32 [channels, height, width]."""
        try:
            with self.pillow.Image.open(path) as image:
                if image.mode.startswith(("I", "F")):
                    raise Problem(f"{path}: it has more than 8 bits for each channel (mode {image.mode}); convert it first")
                image = self.pillow.ImageOps.exif_transpose(image).convert(MODES[self.channels])
        except (OSError, SyntaxError, ValueError, self.pillow.Image.DecompressionBombError) as error:
            raise Problem(f"{path}: it cannot be read as an image: {error}") from error
        if image.size != (self.width, self.height):
            image = image.resize((self.width, self.height), self.pillow.Image.Resampling.BILINEAR)
        parts = [channel.point(table, "F").tobytes() for channel, table in zip(image.split(), self.tables)]
        return little_endian(array.array("f", b"".join(parts))).tobytes()


def as_f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def header_of(count, reader):
    """The beginning of a safetensors file of the images and their labels."""
    size = 4 * count * reader.elements
    header = {"images": {"dtype": "F32", "shape": [count, reader.channels, reader.height, reader.width],
                         "data_offsets": [0, size]},
              "labels": {"dtype": "I32", "shape": [count], "data_offsets": [size, size + 4 * count]}}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def write_images(file, files, reader, threads, stop):
    progress = Progress(sum(path.stat().st_size for path, _ in files))
    done = 0
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for begin in range(0, len(files), IMAGES_OF_THREAD * threads):
            paths = [path for path, _ in files[begin:begin + IMAGES_OF_THREAD * threads]]
            for path, values in zip(paths, pool.map(reader.read, paths)):
                file.write(values)
                done += path.stat().st_size
            progress.show(done, f"{begin + len(paths)} images")
            if stop.is_set():
                progress.close()
                raise Problem(f"interrupted after {begin + len(paths)} images; nothing is written")
    progress.close()


def run(options, stop):
    if not options.output.endswith(".safetensors"):
        raise Problem(f"{options.output}: the name of a file of images ends with .safetensors")
    reader = ImageReader(options)
    names = find_classes(options)
    files, others = find_images(options, names)
    beside = pathlib.Path(f"{options.output}.partial")
    try:
        with open(beside, "wb") as file:
            file.write(header_of(len(files), reader))
            write_images(file, files, reader, options.threads or os.cpu_count() or 1, stop)
            for _, number in files:
                file.write(struct.pack("<i", number))
            file.flush()
            os.fsync(file.fileno())
        write_classes(classes_path(options.output), names)
        os.replace(beside, options.output)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    left_out = f"; {others} files that are neither PNG nor JPEG are left out" if others else ""
    print(f"{options.output}: {len(files)} images of {reader.channels} x {reader.height} x {reader.width} in {len(names)} "
          f"classes{left_out}")
