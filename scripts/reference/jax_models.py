"""Models of JAX that jax_capture.py captures: {name: function that returns (params, loss, batch)}, with arrays of f32."""

import functools

import equinox
import flax.linen
import flax.nnx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

TOKENS, WIDTH, HEADS, POSITIONS, BATCH = 29, 16, 4, 6, 4


def batch_of_tokens():
    example = jnp.zeros((BATCH, POSITIONS), jnp.int32)
    return {"tokens": example, "labels": example}


def mean_loss(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def mlp():
    """Plain JAX, for classes of points."""
    keys = jax.random.split(jax.random.key(0), 3)
    sizes = [7, 12, 20, 5]
    params = [{"w": jax.random.normal(key, (n, m)) / n**0.5, "b": jnp.zeros(m)}
              for key, n, m in zip(keys, sizes, sizes[1:])]

    def loss(params, batch):
        x = batch["x"]
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        logits = jax.nn.log_softmax(x @ params[-1]["w"] + params[-1]["b"])
        picked = jnp.take_along_axis(logits, batch["labels"][:, None], axis=-1)
        return -picked.mean() + 1e-3 * sum(jnp.sum(layer["w"] ** 2) for layer in params)
    return params, loss, {"x": jnp.zeros((BATCH, 7)), "labels": jnp.zeros(BATCH, jnp.int32)}


def rotated(x):
    """Rotary positions (Su et al. 2021, section 3.2), halves of the heads turned together."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * 100.0 ** (-jnp.arange(half) / half)
    cos, sin = (f(angles).astype(x.dtype)[None, :, None] for f in (jnp.cos, jnp.sin))
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def rms_norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def causal_attention(q, k, v):
    """jax.nn.dot_product_attention() without its softmax in f32, whose rounding would hide errors in f64."""
    k, v = (jnp.repeat(each, q.shape[2] // k.shape[2], axis=2) for each in (k, v))
    scores = jnp.einsum("bshe,bthe->bhst", q, k) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    return jnp.einsum("bhst,bthe->bshe", jax.nn.softmax(scores, axis=-1), v)


def decoder():
    """Plain JAX: layers stacked and scanned, rotary positions, groups of heads that share keys, and SwiGLU."""
    def draw(number, *shape):
        return jax.random.normal(jax.random.key(number), shape) / shape[-1] ** 0.5
    depth, size, shared = 2, WIDTH // HEADS, HEADS // 2
    layers = {"attention_norm": jnp.ones((depth, WIDTH)), "mlp_norm": jnp.ones((depth, WIDTH)),
              "q": draw(1, depth, WIDTH, HEADS, size), "k": draw(2, depth, WIDTH, shared, size),
              "v": draw(3, depth, WIDTH, shared, size), "o": draw(4, depth, HEADS, size, WIDTH),
              "gate": draw(5, depth, WIDTH, 24), "up": draw(6, depth, WIDTH, 24), "down": draw(7, depth, 24, WIDTH)}
    params = {"embed": draw(8, TOKENS, WIDTH), "layers": layers, "norm": jnp.ones(WIDTH), "head": draw(9, WIDTH, TOKENS)}

    def layer(x, w):
        y = rms_norm(x, w["attention_norm"])
        q, k, v = (jnp.einsum("bsd,dhe->bshe", y, w[name]) for name in ("q", "k", "v"))
        y = causal_attention(rotated(q), rotated(k), v)
        x = x + jnp.einsum("bshe,hed->bsd", y, w["o"])
        y = rms_norm(x, w["mlp_norm"])
        return x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"], None

    def loss(params, batch):
        x, _ = jax.lax.scan(layer, params["embed"][batch["tokens"]], params["layers"])
        return mean_loss(rms_norm(x, params["norm"]) @ params["head"], batch["labels"])
    return params, loss, batch_of_tokens()


class FlaxBlock(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x):
        y = flax.linen.LayerNorm()(x)
        mask = flax.linen.make_causal_mask(jnp.ones(x.shape[:2]))
        x = x + flax.linen.MultiHeadDotProductAttention(num_heads=HEADS, name="attention")(y, mask=mask)
        y = flax.linen.Dense(2 * WIDTH)(flax.linen.LayerNorm()(x))
        return x + flax.linen.Dense(WIDTH)(flax.linen.gelu(y))


class FlaxDecoder(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, tokens):
        x = flax.linen.Embed(TOKENS, WIDTH, name="tokens")(tokens)
        x = x + self.param("positions", flax.linen.initializers.normal(0.1), (POSITIONS, WIDTH))
        for i in range(2):
            x = FlaxBlock(name=f"block{i}")(x)
        return flax.linen.Dense(TOKENS, use_bias=False, name="head")(flax.linen.LayerNorm()(x))


def flax_decoder():
    """A decoder of flax.linen."""
    model, batch = FlaxDecoder(), batch_of_tokens()
    params = model.init(jax.random.key(0), batch["tokens"])["params"]
    return params, lambda params, batch: mean_loss(model.apply({"params": params}, batch["tokens"]), batch["labels"]), batch


def equinox_mlp():
    """A perceptron of equinox over each position, with a norm and softplus."""
    keys = jax.random.split(jax.random.key(0), 3)
    model = (equinox.nn.Embedding(TOKENS, WIDTH, key=keys[0]), equinox.nn.LayerNorm(WIDTH),
             equinox.nn.MLP(WIDTH, TOKENS, 24, 2, activation=jax.nn.softplus, key=keys[1]))
    params, static = equinox.partition(model, equinox.is_inexact_array)

    def loss(params, batch):
        embedding, norm, net = equinox.combine(params, static)
        logits = jax.vmap(jax.vmap(lambda token: net(norm(embedding(token)))))(batch["tokens"])
        return mean_loss(logits, batch["labels"])
    return params, loss, batch_of_tokens()


def gate(x):
    """What jax.jit calls silu here is another function."""
    def silu(x):
        return jax.nn.sigmoid(x) * jax.nn.sigmoid(x)
    return jax.jit(silu)(x)


def operators():
    """Primitives that the other models do not have, one by one, also where a maximum has ties."""
    def draw(number, *shape):
        return jax.random.normal(jax.random.key(number), shape)
    params = {"w": draw(1, 7, 8), "v": draw(2, 8), "u": draw(3, 3, 8)}

    def loss(params, batch):
        x = batch["x"] @ params["w"]
        y = [jnp.clip(x, -0.5, 0.5), jax.lax.clamp(x.dtype.type(-1), x, x.dtype.type(1)), gate(x)]
        y += [jax.nn.softplus(x), jax.nn.relu(x - 0.25)]
        y += [jnp.expm1(0.3 * x), jnp.log1p(x * x), x ** 3, jnp.square(x), jax.lax.rsqrt(1 + x * x), jnp.abs(x), -x]
        y += [jnp.where(jnp.isfinite(x) & ~(x > 1), x, 2.0), jnp.minimum(x, params["v"]), jnp.maximum(x, -params["v"])]
        y += [jnp.pad(x[:, 1:7:2], ((0, 0), (2, 3)), constant_values=0.5), jnp.concatenate(jnp.split(x, [3, 5], axis=1)[::-1], 1)]
        y += [jnp.repeat(jnp.tanh(jnp.einsum("bi,ji->bj", x, params["u"]))[:, :2], 4, axis=1)]
        y += [x * jax.nn.logsumexp(x, axis=1, keepdims=True), x / jnp.sqrt(x.var(axis=1, keepdims=True) + 0.1)]
        y += [x - x.max(axis=1, keepdims=True), x.min(axis=1)[:, None] * x, x.reshape(-1, 2, 4).swapaxes(1, 2).reshape(-1, 8)]
        y += [jnp.concatenate(jnp.unstack(jnp.tile(x.reshape(-1, 2, 4), (1, 1, 2)), axis=1)[:1], axis=1), jnp.exp2(0.3 * x)]
        # An index of -1 that is computed counts from the end.
        y += [jnp.abs(x) * params["w"][batch["labels"] - 1], 100 * jnp.log1p(1e-6 * x), 100 * jnp.expm1(1e-6 * x)]
        y += [jax.lax.dynamic_slice_in_dim(jnp.concatenate([x, x], axis=1), 3, 8, axis=1)]
        scores = jnp.stack([each.sum(axis=1) for each in y], axis=1)
        # Each operator counts in one class, so that none cancels in the softmax of the loss.
        weights = 2 * jax.nn.softmax(jnp.cos(jnp.arange(scores.shape[1], dtype=x.dtype)))
        classes = jnp.pad(scores * weights, ((0, 0), (0, -scores.shape[1] % 5)))
        v = params["v"]
        thrice = jnp.stack([v, -v, v])
        ties = jnp.maximum(v, v) + 2 * jnp.minimum(v, v) + thrice.max(axis=0) + 3 * thrice.min(axis=0)
        return mean_loss(classes.reshape(BATCH, -1, 5).sum(axis=1), batch["labels"]) + 0.1 * jnp.mean(ties * jnp.arange(8, dtype=x.dtype))
    return params, loss, {"x": jnp.zeros((BATCH, 7)), "labels": jnp.zeros(BATCH, jnp.int32)}


def by_hand(x, key, rate):
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def by_its_complement(x, key, rate):
    return jnp.where(jax.random.uniform(key, x.shape) < rate, 0, x) / (1 - rate)


def by_bits(x, key, rate):
    """Of keys as JAX had them first, by the hash itself."""
    bits = jax.extend.random.threefry_2x32(jax.random.key_data(key), jnp.arange(x.size, dtype=jnp.uint32)).reshape(x.shape)
    return x * (bits >= jnp.uint32(rate * 2**32)) / (1 - rate)


def of_samples(x, key, rate):
    keys = jax.random.split(key, len(x))
    return jax.vmap(lambda x, key: equinox.nn.Dropout(rate)(x, key=key))(x, keys)


def of_rows(x, key, rate):
    """One choice for all of a row, as stochastic depth makes it."""
    return flax.linen.Dropout(rate, broadcast_dims=(1,), deterministic=False).apply({}, x, rngs={"dropout": key})


def by_bytes(x, key, rate):
    """Of few values, each as likely."""
    return jnp.where(jax.random.bits(key, x.shape, jnp.uint8) >= int(256 * rate), x, 0) / (1 - rate)


def of_parts(x, key, rate):
    """A mask of parts of others, of which no element is in two places."""
    n, m = x.shape
    first, second = jax.vmap(lambda key: jax.random.bernoulli(key, 1 - rate, (m, n + 1)))(jax.random.split(key))
    return jnp.where(jnp.concatenate([first[:, 1:].T[:n // 2], second[:, :n].T[n // 2:]]), x / (1 - rate), 0)


# {how models write it: dropout of a tensor of two or more dimensions}
DROPOUTS = {
    "plain": by_hand, "complement": by_its_complement, "threefry": by_bits, "equinox": of_samples, "rows": of_rows,
    "bytes": by_bytes, "parts": of_parts,
    "linen": lambda x, key, rate: flax.linen.Dropout(rate, deterministic=False).apply({}, x, rngs={"dropout": key}),
    "nnx": lambda x, key, rate: flax.nnx.Dropout(rate)(x, rngs=flax.nnx.Rngs(key)),
}


def dropouts(rate):
    """Dropout in all the ways, one after the other."""
    widths = [7, *range(12, 12 + len(DROPOUTS)), 5]
    params = [jax.random.normal(jax.random.key(i), shape) / shape[0] ** 0.5 for i, shape in enumerate(zip(widths, widths[1:]))]

    def loss(params, batch):
        x, keys = batch["x"] @ params[0], jax.random.split(jax.random.key(1), len(DROPOUTS))
        for w, key, drop in zip(params[1:], keys, DROPOUTS.values(), strict=True):
            x = drop(jnp.tanh(x), key, rate) @ w
        return mean_loss(x, batch["labels"])
    return params, loss, {"x": jnp.zeros((BATCH, 7)), "labels": jnp.zeros(BATCH, jnp.int32)}


SHARDED_MESH = AbstractMesh((2, 2), ("batch", "model"))


def typed(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(SHARDED_MESH, P(*spec)))


def constrained(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(SHARDED_MESH, P(*spec)))


def sharded():
    """Two layers whose weights, features and values between have shardings, some of them twice, on a mesh with an axis that has a
    name of dtc's."""
    params = {"up": typed((12, 20), None, "model"), "bias": typed((20,), "model"), "down": typed((20, 5), "model", None)}
    batch = {"x": typed((8, 12), "batch"), "labels": jax.ShapeDtypeStruct((8,), jnp.int32)}

    def loss(params, batch):
        hidden = jax.nn.gelu(constrained(batch["x"], "batch") @ params["up"] + params["bias"])
        hidden = constrained(constrained(hidden, "batch"), None, "model")
        return mean_loss(hidden @ params["down"], batch["labels"])
    return params, loss, batch


def sharded_heads():
    """Attention whose products have shardings before they are split into heads, with and without a bias, after heads are merged, and
    in its scores, which dtc computes within an operator."""
    heads, size, width = 4, 5, 12
    params = {name: typed((width, heads * size)) for name in ("query", "key", "value")}
    params |= {"bias": typed((heads * size,)), "out": typed((heads * size, width)), "head": typed((width, 5))}
    batch = {"x": typed((8, 6, width)), "labels": jax.ShapeDtypeStruct((8,), jnp.int32)}

    def loss(params, batch):
        def split(x):
            return constrained(x, "batch", None, "model").reshape(8, 6, heads, size)
        query = split(batch["x"] @ params["query"] + params["bias"])
        key, value = split(batch["x"] @ params["key"]), split(batch["x"] @ params["value"])
        scores = constrained(jnp.einsum("bshd,bthd->bhst", query, key) / size ** 0.5, "batch", "model")
        mixed = jnp.einsum("bhst,bthd->bshd", jax.nn.softmax(scores, -1), value).reshape(8, 6, heads * size)
        y = batch["x"] + constrained(mixed, "batch", None, "model") @ params["out"]
        return mean_loss(y.mean(1) @ params["head"], batch["labels"])
    return params, loss, batch


MODELS = {"mlp": mlp, "operators": operators, "decoder": decoder, "flax": flax_decoder, "equinox": equinox_mlp,
          "kept": functools.partial(dropouts, 0.0)}
CLASSES = {"mlp": 5, "operators": 5, "kept": 5, "dropout": 5}
# Of those that draw, no losses can be compared with JAX, which draws others.
DRAWN = {"dropout": functools.partial(dropouts, 0.25)}
# Those whose shardings need a mesh of devices: jax_shardings.py compares them.
SHARDED = {"sharded": sharded, "sharded-heads": sharded_heads}


@jax.custom_vjp
def reversed_gradient(x):
    return x


@jax.custom_jvp
def straight_through(x):
    return jnp.maximum(x, 0)


straight_through.defjvp(lambda x, d: (jnp.maximum(x[0], 0), d[0]))


reversed_gradient.defvjp(lambda x: (x, None), lambda _, g: (-g,))

# {name: (loss of the parameter w [3, 3] and the input x [4, 3], a part of the error)}
REFUSED = {
    "stopped": (lambda w, x: (x @ (jax.lax.stop_gradient(w) * w)).sum(), "the value depends on what stop_gradient() was given"),
    "max": (lambda w, x: jnp.square(w - jax.lax.stop_gradient(w.max())).sum(), "only what cancels"),
    "branch": (lambda w, x: jax.lax.cond(x.sum() > 0, jnp.sum, jnp.max, x @ w), "the primitive 'cond' has no rule"),
    "loop": (lambda w, x: jax.lax.while_loop(lambda y: y.sum() < 9, lambda y: y @ w, x).sum(), "the primitive 'while' has no rule"),
    "sort": (lambda w, x: jnp.sort(x @ w)[0].sum(), "the primitive 'sort' has no rule"),
    "own": (lambda w, x: reversed_gradient(x @ w).sum(), "the primitive 'custom_vjp_call' has no rule"),
    "jvp": (lambda w, x: straight_through(x @ w).sum(), "has a derivative of its own"),
    "sign": (lambda w, x: (jnp.sign(x) * (x @ w)).sum(), "the primitive 'sign' has no rule"),
    "exponent": (lambda w, x: (x ** w[0]).sum(), "the exponent is no number"),
    "integers": (lambda w, x: w[0, jnp.uint8(x[:, 0] > 0) - jnp.uint8(1)].sum(), "'sub' gives uint8, which may wrap around"),
    "rounded": (lambda w, x: (w - jax.lax.stop_gradient(w.max())).astype(int).astype(w.dtype).sum() + w.sum(),
                "the value depends on what stop_gradient() was given"),
    "loss": (lambda w, x: jnp.sign((x @ w).sum()), "the loss is a result of 'sign', which has no rule"),
    "place": (lambda w, x: jax.lax.gather(w, jnp.int32(x[:, :2]), jax.lax.GatherDimensionNumbers((0, 1), (), (0, 1)), (1, 3)).sum(),
              "elements are looked up in a way that has no rule"),
    "lookup": (lambda w, x: w[jnp.int32(x[0]), jnp.int32(x[1])].sum(), "elements are looked up in a way that has no rule"),
    "slice": (lambda w, x: jax.lax.dynamic_slice_in_dim(x @ w, jnp.int32(x[0, 0]), 2).sum(), "begins at an index that depends on data"),
    "value": (lambda w, x: (x @ w).sum() if x[0, 0] > 0 else w.sum(), "JAX cannot trace the loss: TracerBoolConversionError"),
    "normal": (lambda w, x: (x @ w * jax.random.normal(jax.random.key(0), x.shape)).sum(), "captured as dropout alone"),
    "noise": (lambda w, x: (x @ w + jax.random.uniform(jax.random.key(0), x.shape)).sum(), "captured as dropout alone"),
    "shuffled": (lambda w, x: (x @ w)[jax.random.permutation(jax.random.key(0), 4)].sum(), "captured as dropout alone"),
    "counted": (lambda w, x: (x @ w).sum() * jax.random.bernoulli(jax.random.key(0), 0.5, (4,)).sum(), "captured as dropout alone"),
    "mixed": (lambda w, x: jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, x.shape), x @ w, x).sum(), "captured as dropout alone"),
    "drawn": (lambda w, x: jax.random.uniform(jax.random.key(0)), "the loss is drawn"),
    "trained": (lambda w, x: jnp.where(jax.random.bernoulli(jax.random.key(0), jax.nn.sigmoid(w[0, 0]), x.shape), x @ w, 0).sum(),
                "captured as dropout alone"),
    "dropped": (lambda w, x: by_hand(x @ w, jax.random.key(0), 1.0).sum(), "keeps elements with the probability 0.0"),
    "key": (lambda w, x: by_hand(by_hand(x @ w, jax.random.key(0), 0.5), jax.random.key(0), 0.5).sum(), "use a key for each"),
    "mask": (lambda w, x: sum((y * jax.random.bernoulli(jax.random.key(0), 0.5, x.shape)).sum() for y in (x, x @ w)), "use a key for each"),
    "unsigned": (lambda w, x: (w[0] * jnp.int32(x[:, 0]).astype(jnp.uint32)[:, None]).sum(), "gives uint32, which may wrap around"),
    "set": (lambda w, x: (x @ w).at[0, 0].set(1.0).sum(), "elements of a tensor are set"),
    "matrix": (lambda w, x: x @ w, "expected one scalar float"),
    "mapped": (lambda w, x: jax.shard_map(lambda y: y, mesh=jax.make_mesh((1,), ("dp",), axis_types=(AxisType.Auto,)),
                                          in_specs=P("dp"), out_specs=P("dp"))(x @ w).sum(),
               "jax.shard_map() says what each device computes"),
    "constant": (lambda w, x: x.sum(), "the loss does not depend on the parameters"),
    "bf16": (lambda w, x: w.sum(), "expected float32 or float64", jnp.bfloat16),
}
