"""Tests of dtc-data images with images that they draw themselves. Usage: ImageDataTest.py folder-of-programs"""

import array
import json
import os
import random
import signal
import struct
import sys
import unittest

try:
    from PIL import Image
except ImportError:
    # 77 is what CTest takes as skipped.
    print("the Python package pillow is not installed")
    sys.exit(77)

from command_test import PROGRAMS, ROOT, CommandTest  # noqa: E402


def as_f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class ImageData(CommandTest):
    def draw(self, name, width=4, height=4, mode="RGB", seed=0, **save_options):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        size = width * height * len(Image.new(mode, (1, 1)).getbands())
        image = Image.frombytes(mode, (width, height), random.Random(f"{name} {seed}").randbytes(size))
        image.save(path, **save_options)
        return image

    def read(self, name):
        """The shapes and the values of images and labels."""
        data = (self.folder / name).read_bytes()
        size, = struct.unpack("<Q", data[:8])
        result = {}
        for key, entry in json.loads(data[8:8 + size]).items():
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            code = {"F32": "f", "I32": "i"}[entry["dtype"]]
            result[key] = entry["shape"], array.array(code, data[begin:end]).tolist()
        self.assertEqual(list(result), ["images", "labels"])
        return result

    def normalized(self, image, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)):
        """What ViTImageProcessor makes of an image of the right size, in f32: channel by channel."""
        values = []
        for channel, m, s in zip(image.split(), mean, std):
            values += [as_f32(as_f32(as_f32(value / 255) - as_f32(m)) / as_f32(s)) for value in channel.tobytes()]
        return values

    def test_images_are_normalized_by_class(self):
        images = [self.draw("set/b/1.png"), self.draw("set/b/2.PNG"), self.draw("set/ü/1.png")]
        first = self.draw("set/a/x.png")
        self.write("set/a/notes.txt", "no image")
        self.write("set/a/.hidden.png", "no image either")
        printed = self.run_program("images", "set", "--size", "4", "--threads", "2", "-o", "out.safetensors")
        self.assertEqual(printed, "out.safetensors: 4 images of 3 x 4 x 4 in 3 classes; 2 files that are neither PNG nor JPEG are "
                                  "left out\n")
        found = self.read("out.safetensors")
        self.assertEqual(found["labels"], ([4], [0, 1, 1, 2]))
        self.assertEqual(found["images"][0], [4, 3, 4, 4])
        expected = []
        for image in [first, *images]:
            expected += self.normalized(image)
        self.assertEqual(found["images"][1], expected)
        self.assertGreater(max(expected), 0.9)
        self.assertLess(min(expected), -0.9)
        names = json.loads((self.folder / "out.classes.json").read_text(encoding="utf-8"))
        self.assertEqual(names, {"id2label": {"0": "a", "1": "b", "2": "ü"}, "label2id": {"a": 0, "b": 1, "ü": 2}})
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["out.classes.json", "out.safetensors", "set"])

    def test_many_images_keep_their_order(self):
        expected = []
        for number in range(70): # more than are read together
            expected += self.normalized(self.draw(f"set/a/{number:03d}.png", 2, 3))
        self.draw("set/b/0.png", 2, 3)
        self.run_program("images", "set", "--size", "3x2", "--threads", "3", "-o", "out.safetensors")
        shape, values = self.read("out.safetensors")["images"]
        self.assertEqual(shape, [71, 3, 3, 2])
        self.assertEqual(values[:len(expected)], expected)

    def test_mean_and_standard_deviation_of_channels(self):
        image = self.draw("set/a/1.png")
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        self.run_program("images", "set", "--size", "4", "--mean", *mean, "--std", *std, "-o", "out.safetensors")
        self.assertEqual(self.read("out.safetensors")["images"][1], self.normalized(image, mean, std))

    def test_resizing_is_bilinear(self):
        # To half the size, each value is a weighted mean with a triangle as wide as two results.
        image = Image.new("L", (4, 1))
        image.putdata([0, 40, 200, 240])
        (self.folder / "set" / "a").mkdir(parents=True)
        image.save(self.folder / "set" / "a" / "1.png")
        self.run_program("images", "set", "--size", "1x2", "--channels", "1", "--mean", "0", "--std", "1", "-o", "out.safetensors")
        weights = [[0.75, 0.75, 0.25, 0], [0, 0.25, 0.75, 0.75]]
        expected = [sum(w * v for w, v in zip(row, [0, 40, 200, 240])) / sum(row) for row in weights]
        shape, values = self.read("out.safetensors")["images"]
        self.assertEqual(shape, [1, 1, 1, 2])
        for value, wanted in zip(values, expected):
            self.assertAlmostEqual(value * 255, wanted, delta=0.51) # rounded to a whole number

    def test_gray_images_palettes_and_alpha(self):
        gray = self.draw("set/a/gray.png", mode="L")
        self.draw("set/a/alpha.png", mode="RGBA")
        colours = self.draw("set/a/palette.png").quantize(16)
        colours.save(self.folder / "set" / "a" / "palette.png")
        self.run_program("images", "set", "--size", "4", "-o", "out.safetensors")
        shape, values = self.read("out.safetensors")["images"]
        self.assertEqual(shape, [3, 3, 4, 4])
        self.assertEqual(values[48:96], self.normalized(gray.convert("RGB")))
        self.assertEqual(values[96:], self.normalized(colours.convert("RGB")))
        self.run_program("images", "set", "--size", "4", "--channels", "1", "-o", "gray.safetensors")
        shape, values = self.read("gray.safetensors")["images"]
        self.assertEqual(shape, [3, 1, 4, 4])
        self.assertEqual(values[16:32], self.normalized(gray))

    def test_orientation_of_cameras(self):
        exif = Image.Exif()
        exif[0x0112] = 6 # the top of the scene is at the right
        image = self.draw("set/a/1.jpg", 24, 16, exif=exif)
        self.run_program("images", "set", "--size", "24x16", "-o", "out.safetensors")
        values = self.read("out.safetensors")["images"][1]
        with Image.open(self.folder / "set" / "a" / "1.jpg") as stored:
            turned = stored.convert("RGB").transpose(Image.Transpose.ROTATE_270)
        self.assertEqual(image.size, (24, 16))
        self.assertEqual(values, self.normalized(turned))

    def test_classes_of_the_training_data(self):
        for name in ("train/a/1.png", "train/b/1.png", "train/c/1.png", "test/a/1.png", "test/c/1.png"):
            self.draw(name)
        self.run_program("images", "train", "--size", "4", "-o", "train.safetensors")
        self.run_program("images", "test", "--size", "4", "--classes", "train.classes.json", "-o", "test.safetensors")
        self.assertEqual(self.read("test.safetensors")["labels"][1], [0, 2])
        self.assertEqual((self.folder / "test.classes.json").read_bytes(), (self.folder / "train.classes.json").read_bytes())
        self.draw("test/d/1.png")
        self.assertIn('test/d: train.classes.json has no class "d"; its classes are a, b, c',
                      self.run_program("images", "test", "--classes", "train.classes.json", "-o", "x.safetensors", status=1))
        for text in ("{", "[]", '{"id2label": {"1": "a"}}', '{"id2label": ["a"]}'):
            self.write("bad.classes.json", text)
            self.assertIn('bad.classes.json: expected an object with "id2label"',
                          self.run_program("images", "test", "--classes", "bad.classes.json", "-o", "x.safetensors", status=1))
        self.assertIn("none.json: No such file",
                      self.run_program("images", "test", "--classes", "none.json", "-o", "x.safetensors", status=1))

    def test_errors(self):
        self.draw("set/a/1.png")
        (self.folder / "deep" / "a").mkdir(parents=True)
        Image.new("I;16", (4, 4)).save(self.folder / "deep" / "a" / "1.png")
        self.write("set/notes.txt", "text")

        def refused(expected, folder, *flags, output="out.safetensors"):
            before = sorted(path.name for path in self.folder.iterdir())
            error = self.run_program("images", folder, *flags, "-o", output, status=1)
            self.assertIn(f"error: {expected}", error)
            self.assertNotIn("Traceback", error)
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before) # nothing is left

        refused("none: expected a folder, with one folder for each class", "none")
        refused("set/a has no folders, expected one for each class", "set/a")
        refused("out.bin: the name of a file of images ends with .safetensors", "set", output="out.bin")
        refused("none/out.safetensors.partial: No such file", "set", output="none/out.safetensors")
        refused("--size is 4x, expected a number such as 224, or a height and a width", "set", "--size", "4x")
        refused("--size is 0, expected a number such as 224", "set", "--size", "0")
        refused("--mean has 2 numbers, expected one, or one for each of the 3 channels", "set", "--mean", "0.1", "0.2")
        refused("--std is 0.0, expected numbers greater than 0", "set", "--std", "0")
        refused("deep/a/1.png: it has more than 8 bits for each channel (mode I;16); convert it first", "deep")
        (self.folder / "set" / "b").mkdir()
        refused("set/b is empty; remove it, or put images of its class there", "set")
        self.write("set/b/x.webp", "no image")
        refused("set/b has no PNG or JPEG files (.png, .jpg, .jpeg)", "set")
        self.write("set/b/y.png", "no image")
        refused("set/b/y.png: it cannot be read as an image: cannot identify image file", "set")
        whole = (self.folder / "set" / "a" / "1.png").read_bytes()
        (self.folder / "set" / "b" / "y.png").write_bytes(whole[:-30])
        refused("set/b/y.png: it cannot be read as an image: ", "set")

    def test_an_interrupted_command_leaves_nothing(self):
        self.draw("set/a/0.png", 1500, 1500)
        for number in range(1, 60):
            os.link(self.folder / "set" / "a" / "0.png", self.folder / "set" / "a" / f"{number}.png")
        process = self.start("images", "set", "--size", "2000", "--threads", "1", "-o", "out.safetensors")
        while process.poll() is None and not (self.folder / "out.safetensors.partial").exists():
            pass
        process.send_signal(signal.SIGTERM)
        error = process.communicate(timeout=100)[1]
        self.assertEqual(process.returncode, 1, error)
        self.assertIn("images; nothing is written", error)
        self.assertEqual(os.listdir(self.folder), ["set"])

    @unittest.skipUnless((PROGRAMS / "dtc-import").exists(), "the compiler is not built")
    def test_training(self):
        # Of two classes, one is bright at the left and one at the right.
        for number in range(16):
            for name, side in (("left", 0), ("right", 4)):
                image = self.draw(f"set/{name}/{number}.png", 8, 8)
                image.paste((255, 255, 255), (side, 0, side + 4, 8))
                image.save(self.folder / "set" / name / f"{number}.png")
        config = json.loads((ROOT / "examples" / "vit-tiny" / "config.json").read_text())
        config.pop("id2label", None)
        config.update(image_size=8, patch_size=4, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
                      num_attention_heads=2, num_labels=2)
        self.write("config.json", json.dumps(config))
        self.run_program("images", "set", "--size", "8", "-o", "set.safetensors")
        self.run_program("config.json", "--batch", "8", "-o", "m.mlir", program="dtc-import")
        self.run_program("m.mlir", "--mesh", "dp=2", "-o", "train.plan", program="dtc-compile")
        self.run_program("train.plan", "--data", "set.safetensors", "--eval-data", "set.safetensors", "--steps", "60", "--lr", "0.01",
                         "--metrics", "metrics.jsonl", program="dtc-run")
        lines = [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
        losses = [line["eval_loss"] for line in lines if line.get("eval_loss") is not None]
        self.assertLess(losses[-1], 0.1)


if __name__ == "__main__":
    unittest.main()
