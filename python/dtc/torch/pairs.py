"""Complex numbers of a model, as rotary positions are written with, while it is captured: pairs of real tensors."""

import contextlib

import torch


class Complex:
    """A complex tensor of the real parts `real` and the imaginary parts `imag`, of one shape. What has no rule fails by name."""

    def __init__(self, real, imag, fail):
        self.real, self.imag, self.fail = real, imag, fail

    def each(self, compute):
        return Complex(compute(self.real), compute(self.imag), self.fail)

    @property
    def shape(self):
        return self.real.shape

    @property
    def device(self):
        return self.real.device

    def unsqueeze(self, dim):
        return self.each(lambda part: part.unsqueeze(dim))

    def __getitem__(self, index):
        return self.each(lambda part: part[index])

    def to(self, device):
        """On another device; another type would lose a part."""
        return self if isinstance(device, (str, torch.device)) else self.fail("to() of complex numbers takes a device alone")

    def conj(self):
        return Complex(self.real, -self.imag, self.fail)

    def __add__(self, other):
        if not isinstance(other, Complex):
            real = self.real + other
            return Complex(real, self.imag.expand_as(real), self.fail)
        return Complex(self.real + other.real, self.imag + other.imag, self.fail)

    def __mul__(self, other):
        if not isinstance(other, Complex):
            return self.each(lambda part: part * other)
        return Complex(self.real * other.real - self.imag * other.imag, self.real * other.imag + self.imag * other.real, self.fail)

    __radd__, __rmul__ = __add__, __mul__

    def __getattr__(self, name):
        self.fail(f"'{name}' of complex numbers has no rule; compute with their real and imaginary parts")

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        owner = next(each for each in (*args, *(kwargs or {}).values()) if isinstance(each, cls))
        if function in (torch.Tensor.__mul__, torch.mul) and len(args) == 2 and not kwargs:
            return args[0] * args[1] if args[0] is owner else owner * args[0]
        owner.fail(f"'{getattr(function, '__name__', function)}' of complex numbers has no rule; compute with their real and imaginary "
                   "parts")


@contextlib.contextmanager
def captured(fail):
    """In this context complex(), polar(), view_as_complex() and view_as_real() make and take pairs; fail(problem) is called with what has no
    rule."""
    def polar(abs, angle):
        return Complex(abs * torch.cos(angle), abs * torch.sin(angle), fail)

    def view_as_complex(x):
        if x.shape[-1:] != (2,):
            fail(f"view_as_complex() takes {list(x.shape)}, expected a last dimension of 2")
        return Complex(x[..., 0], x[..., 1], fail)

    def view_as_real(x):
        return torch.stack((x.real, x.imag), dim=-1) if isinstance(x, Complex) else before["view_as_real"](x)

    functions = {"complex": lambda real, imag: Complex(real, imag, fail), "polar": polar, "view_as_complex": view_as_complex, "view_as_real": view_as_real}
    before = {name: getattr(torch, name) for name in functions}
    for name, function in functions.items():
        setattr(torch, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(torch, name, function)
