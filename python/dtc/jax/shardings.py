"""Shardings of JAX as entries of dtc-compile --shard."""

from jax.sharding import NamedSharding, PartitionSpec

from dtc.jax.values import CaptureError


class Shardings:
    """What a user says of where values lie: `mesh`, {axis: size}, where something names one, and `entries` of --shard, one for each
    name and for each dimension of an argument."""

    def __init__(self):
        self.mesh, self.names, self.arguments = {}, {}, {}

    def axes_of(self, what, sharding, rank):
        """For each dimension the axes of the mesh that split it; None where the sharding says nothing."""
        if not isinstance(sharding, NamedSharding) or not any(map(names_of, sharding.spec)):
            return None
        mesh = {str(name): int(size) for name, size in sharding.mesh.shape.items()}
        if self.mesh and mesh != self.mesh:
            raise CaptureError(f"the sharding of {what} is on the mesh {mesh}, others are on {self.mesh}; give all of them one mesh")
        self.mesh = mesh
        axes = [names_of(each) for each in sharding.spec]
        return axes + [()] * (rank - len(axes))

    def add_array(self, name, leaf):
        """The sharding of an array of the parameters or the batch, or of its jax.ShapeDtypeStruct."""
        self.add_dims(name, self.axes_of(f"'{name}'", getattr(leaf, "sharding", None), len(leaf.shape)))

    def add_dims(self, name, axes):
        """The last one counts: an array of the parameters or the batch lies as it says by itself, whatever a constraint says."""
        for dim, each in enumerate(axes or []):
            if each:
                self.arguments[f"{name}#{dim}"] = "+".join(each)

    def logical(self, axes):
        """Names of dimensions, "" for those that nothing splits; entries say which axes the names are split by. None is one of those
        that dtc-import gives, such as "batch", which may be an axis of the mesh too."""
        names = ["_".join(("over", *each)) if each else "" for each in axes]
        for name, each in zip(names, axes, strict=True):
            if each:
                self.names[name] = "+".join(each)
        return names

    @property
    def entries(self):
        return [f"{name}={axes}" for name, axes in (self.names | self.arguments).items()]


def names_of(dim):
    """The axes of an entry of a PartitionSpec."""
    if dim is None or dim is PartitionSpec.UNCONSTRAINED:
        return ()
    return tuple(map(str, dim)) if isinstance(dim, tuple) else (str(dim),)
