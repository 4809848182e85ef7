#!/usr/bin/env python3
"""Tests of steps on GPUs: the module has the stand-in of CUDA, which has two GPUs, where DTC_ON_STANDIN is set. Elsewhere there may
be no GPU, and what is said of that is tested.

    PYTHONPATH=BUILD/python-on-standin DTC_ON_STANDIN=1 python3 test/python/gpus.py
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

from training import MLP, batch, values

import dtc

ON_STANDIN = os.environ.get("DTC_ON_STANDIN") == "1"
ROWS = [1, 2, 3, 4]


def compiled(**options):
    return dtc.compile(MLP, optimizer=dtc.AdamW(lr=0.05), **options)


def losses(step, count=5):
    return [step(batch(ROWS))["loss"] for _ in range(count)]


def sees_gpus():
    try:
        return compiled(device="cuda").device == "cuda"
    except dtc.Error:
        return False


HAS_GPUS = sees_gpus()


def run_as_one_of_two(device, other):
    """Prints the losses of a process that computes on `device`, or on `other` if it is not the first one, or its error."""
    options = {"mesh": "dp=2", "gpu": {"fabric": "local"}, "device": device if os.environ["RANK"] == "0" else other}
    try:
        print(json.dumps(losses(compiled(**options))))
    except dtc.Error as error:
        print(json.dumps(str(error)))


def run_two(device, other):
    """What each of two processes prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [subprocess.Popen([sys.executable, __file__, "one of two", device, other], stdout=subprocess.PIPE, text=True,
                                env=os.environ | given | {"RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(2)]
    return [json.loads(each.communicate(timeout=60)[0]) for each in started]


class Devices(unittest.TestCase):
    def assertClose(self, one, other):
        for a, b in zip(one, other, strict=True):
            self.assertLess(abs(a - b), 1e-5 * abs(a), (one, other))

    @unittest.skipUnless(HAS_GPUS, "needs a GPU")
    def test_gpus_have_the_losses_of_the_cpu(self):
        on_cpu = compiled(device="cpu")
        expected = losses(on_cpu)
        self.assertEqual(on_cpu.device, "cpu")
        for mesh in (None, "dp=2", "tp=2", "pp=2"):
            for gpu in ({}, {"fabric": "nccl"}, {"fabric": "local", "cuda_graphs": "off"}):
                with self.subTest(mesh=mesh, gpu=gpu):
                    if gpu.get("fabric") == "nccl" and (mesh is None or not ON_STANDIN):  # it needs two GPUs
                        continue
                    step = compiled(mesh=mesh, device="cuda", gpu=gpu)
                    self.assertClose(expected, losses(step))
                    self.assertEqual(step.device, "cuda")
                    self.assertClose([on_cpu.evaluate(batch(ROWS))], [step.evaluate(batch(ROWS))])

    @unittest.skipUnless(HAS_GPUS, "needs a GPU")
    def test_auto_takes_the_gpu(self):
        self.assertEqual(compiled().device, "cuda")

    @unittest.skipUnless(HAS_GPUS, "needs a GPU")
    def test_checkpoints_and_weights_go_from_the_cpu_to_gpus_and_back(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = compiled(device="cpu"), compiled(mesh="dp=2,tp=2", device="cuda")
            losses(first, 3)
            first.save(folder)
            second.load(folder)
            self.assertEqual(second.steps_done, 3)
            self.assertEqual(values(second), values(first))
            expected = losses(first)
            self.assertClose(expected, losses(second))
            third = compiled(device="cpu", init={name: memoryview(each) for name, each in second.state_dict().items()})
            self.assertEqual(values(third), values(second))
            path = pathlib.Path(folder) / "weights.safetensors"
            second.save_weights(path)
            self.assertEqual(values(compiled(device="cuda", init=path)), values(second))

    @unittest.skipUnless(HAS_GPUS, "needs a GPU")
    def test_more_devices_than_gpus_share_them(self):
        self.assertClose(losses(compiled(device="cpu")), losses(compiled(mesh="dp=4", device="cuda")))
        with self.assertRaisesRegex(dtc.Error, 'fabric="nccl": .*GPU'):
            losses(compiled(mesh="dp=4", device="cuda", gpu={"fabric": "nccl"}))

    @unittest.skipIf(HAS_GPUS, "there are GPUs")
    def test_auto_takes_the_cpu_where_there_is_no_gpu(self):
        self.assertEqual(compiled(device="auto").device, "cpu")
        with self.assertRaisesRegex(dtc.Error, '^device="cuda": '):
            losses(compiled(device="cuda"))

    @unittest.skipUnless(ON_STANDIN, "needs two GPUs")
    def test_processes_compute_on_the_same(self):
        first, second = run_two("cuda", "cuda")
        self.assertIsInstance(first, list, first)
        self.assertEqual(first, second)
        self.assertClose(losses(compiled(device="cpu")), first)
        for error in run_two("cuda", "cpu"):
            self.assertIn("process 1 has another device or gpu option than process 0", error)

    def test_wrong_uses(self):
        for options, text in (
            ({"device": "tpu"}, 'device: tpu not in {cpu,cuda,auto}'),
            ({"device": 0}, 'device is 0, expected "cpu", "cuda" or "auto"'),
            ({"gpu": "nccl"}, "gpu is 'nccl', expected a mapping of names to values"),
            ({"gpu": {"device": "cuda"}}, 'gpu has a "device", which is an argument of its own'),
            ({"gpu": {"fabrik": "nccl"}}, 'fabrik is no flag of devices, expected .*fabric, .*; did you mean "fabric"\\?'),
            ({"gpu": {"fabric": "nvlink"}}, "fabric: nvlink not in {local,nccl,auto}"),
            ({"gpu": {"cudnn": True}}, "cudnn: true not in {on,off,auto}"),
            ({"gpu": {"nccl_channels": 0}}, "nccl_channels: .*0.* not in range"),
        ):
            with self.subTest(options), self.assertRaisesRegex(dtc.Error, text):
                compiled(**options)
        # What only devices can tell comes with the first step.
        for gpu, text in (({"fabric": "nccl"}, 'fabric="nccl" is for GPUs; add device="cuda", or leave it out'),
                          ({"share_gpu": True}, 'share_gpu is for fabric="nccl"'),
                          ({"nccl_channels": 2}, "nccl_channels is for GPUs that NCCL connects")):
            step = compiled(device="cpu", gpu=gpu)
            with self.subTest(gpu), self.assertRaisesRegex(dtc.Error, text):
                step(batch(ROWS))


if __name__ == "__main__":
    if sys.argv[1:2] == ["one of two"]:
        run_as_one_of_two(*sys.argv[2:])
    else:
        unittest.main()
