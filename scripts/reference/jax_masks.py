"""Masks of JAX that jax_capture.py captures or that have to be refused, and numbers that it compares with JAX. Each loss is a function
of the parameter w [8, 8] and of the batch of batch()."""

import jax
import jax.extend
import jax.numpy as jnp

SIZE, RATE = 8, 0.5


def batch():
    key, numbers = jax.random.key(1), jnp.zeros(SIZE, jnp.int32)
    raw = jax.random.key_data(jax.random.split(key, SIZE))
    return {"x": jnp.zeros((SIZE, SIZE)), "groups": numbers, "step": numbers[0], "key": key, "keys": jax.random.split(key, SIZE), "raw": raw}


def mask(key, *shape):
    return jax.random.bernoulli(key, 1 - RATE, shape or (SIZE, SIZE))


def drop(mask, x):
    return jnp.where(mask, x / (1 - RATE), 0)


def dropped(*masks):
    """The loss of masks of a batch, each of the first elements of w."""
    def loss(w, batch):
        found = [each(batch) for each in masks]
        return sum(drop(each, w[tuple(slice(0, size) for size in each.shape)]).sum() for each in found)
    return loss


def key_of_step(offset):
    return lambda batch: mask(jax.random.fold_in(batch["key"], batch["step"] + offset))


def of_samples(key):
    """A loss with a mask of each sample, whose key is of the batch and of the sample's number, group and keys."""
    def loss(w, batch):
        def one(x, *given):
            return drop(mask(key(batch, *given), SIZE), x)
        return jax.vmap(one)(w, jnp.arange(SIZE), batch["groups"], batch["keys"], batch["raw"]).sum()
    return loss


def scanned(key):
    """A loss of steps of a scan, with a key of the batch and of the step's number and group."""
    def loss(w, batch):
        def step(x, given):
            return drop(mask(key(batch, *given), SIZE), x), None
        return jax.lax.scan(step, w[0], (jnp.arange(3), batch["groups"][:3]))[0].sum()
    return loss


def hashed(key, counts):
    bits = jax.extend.random.threefry_2x32(key, counts)
    return bits.reshape(SIZE, SIZE) >> 31 > 0


def jitted_twice():
    """Two compiled functions that have one key."""
    raw = jax.random.PRNGKey(7)
    first, second = (jax.jit(lambda x, i=i: drop(mask(raw), i * x)) for i in (1, 2))
    return lambda w, batch: first(w).sum() + second(w).sum()


def scanned_keys(w, batch):
    keys = jnp.stack([*jax.random.split(batch["key"], 3)])
    return jax.lax.scan(lambda x, key: (drop(mask(key, SIZE), x), None), w[0], keys)[0].sum()


def key_of(derive):
    return lambda batch: mask(derive(batch["key"]))


EVERY = jnp.arange(SIZE * SIZE, dtype=jnp.uint32)
PAIRS = EVERY // 2
RAW = jax.random.PRNGKey(7)
PLACE, ALIKE, JOINED, EQUAL = "look up the same place", "use a key for each", "what is joined", "numbers that may be equal"

# {name: (loss, a part of the error)}
REFUSED_MASKS = {
    "groups": (dropped(lambda b: mask(b["key"])[b["groups"]]), PLACE),
    "group keys": (of_samples(lambda b, i, group, *_: jax.random.split(b["key"], 3)[group]), PLACE),
    "group rows": (dropped(lambda b: jnp.take(mask(b["key"], 4), b["groups"])[:, None]), PLACE),
    "group raw": (lambda w, b: jax.vmap(lambda x, i: drop(mask(b["raw"][i], SIZE), x))(w, b["groups"]).sum(), "computed in the loss"),
    "place": (dropped(lambda b: mask(b["key"], 3, SIZE, SIZE)[b["step"]]), PLACE),
    "repeated": (dropped(lambda b: mask(b["key"])[jnp.array([0, 0, 1])]), PLACE),
    "end": (dropped(lambda b: jnp.take(mask(b["key"]), SIZE, axis=0)), "places beyond their ends"),
    "beyond": (dropped(lambda b: jnp.take(mask(b["key"]), jnp.array([0, SIZE]), axis=0)), "places beyond their ends"),
    "transposed": (dropped(lambda b: mask(b["key"]), lambda b: mask(b["key"]).T), ALIKE),
    "row": (dropped(lambda b: mask(b["key"]), lambda b: mask(b["key"])[0]), ALIKE),
    "overlap": (dropped(lambda b: mask(b["key"])[:4], lambda b: mask(b["key"])[1:5]), ALIKE),
    "joined": (dropped(lambda b: jnp.concatenate([mask(b["key"], 4, SIZE)] * 2)), JOINED),
    "shapes": (dropped(lambda b: mask(b["key"]), lambda b: mask(b["key"], 4, SIZE)), ALIKE),
    "unpacked": (dropped(key_of(lambda key: [*jax.random.split(key, 3)][0]), key_of(lambda key: jax.random.split(key, 3)[0])), ALIKE),
    "counts": (dropped(key_of(lambda key: jax.random.split(key, 3)[1]), key_of(lambda key: jax.random.split(key)[1])), ALIKE),
    "folded": (dropped(key_of(lambda key: jax.random.split(key)[1]), key_of(lambda key: jax.random.fold_in(key, 1))), ALIKE),
    "step": (dropped(key_of_step(1), key_of_step(1)), ALIKE),
    "numbers": (dropped(key_of_step(0), lambda b: mask(jax.random.fold_in(b["key"], b["groups"][0]))), EQUAL),
    "sample numbers": (of_samples(lambda b, i, group, *_: jax.random.fold_in(b["key"], group)), EQUAL),
    "step numbers": (scanned(lambda b, i, group: jax.random.fold_in(b["key"], group)), EQUAL),
    "sample seeds": (of_samples(lambda b, i, group, *_: jax.random.key(group)), "seeds that may repeat"),
    "steps": (scanned(lambda b, i, group: b["key"]), ALIKE),
    "jitted": (jitted_twice(), ALIKE),
    "typed": (dropped(lambda b: mask(jax.random.key(3)), lambda b: mask(jax.random.PRNGKey(3))), ALIKE),
    "repeated raw": (lambda w, b: jax.vmap(lambda x, key: drop(mask(key, SIZE), x))(w[:2], b["raw"][jnp.array([1, 1])]).sum(),
                     "keys repeat"),
    "raw rows": (dropped(lambda b: mask(b["raw"][1]), lambda b: mask(b["raw"][:2][1])), ALIKE),
    "words": (dropped(lambda b: mask(jax.random.key_data(b["key"])[::-1])), "parts of others"),
    "hash": (dropped(*[lambda b: hashed(jax.random.key_data(b["key"]), EVERY)] * 2), ALIKE),
    "hash of equals": (dropped(lambda b: hashed(b["raw"][0], PAIRS)), "numbers that repeat"),
    "rounded": (dropped(lambda b: jax.random.uniform(b["key"], (SIZE, SIZE)).astype(jnp.bfloat16) < 0.5), "captured as dropout alone"),
}

# {name: (loss, the shapes of the masks that dtc draws, the inputs that become keys and nothing else)}
WHOLE, ROW = (SIZE, SIZE), (SIZE,)
MASKS = {
    "row": (dropped(lambda b: mask(b["key"])[3]), [ROW], {"key"}),
    "rows": (dropped(lambda b: mask(b["key"])[0], lambda b: mask(b["key"])[1]), [ROW] * 2, {"key"}),
    "places": (dropped(lambda b: mask(b["key"])[jnp.array([3, 1, 2])]), [(3, SIZE)], {"key"}),
    "taken": (dropped(lambda b: jnp.take(mask(b["key"]), 2, axis=0)), [ROW], {"key"}),
    "halves": (dropped(lambda b: mask(b["key"])[::2], lambda b: mask(b["key"])[1::2]), [(4, SIZE)] * 2, {"key"}),
    "turned": (dropped(lambda b: mask(b["key"]).reshape(2, -1)[0].reshape(4, SIZE), lambda b: mask(b["key"]).T[:, 4:]),
               [(4, SIZE), (SIZE, 4)], {"key"}),
    "joined": (dropped(lambda b: jnp.concatenate([mask(key, 4, SIZE) for key in jax.random.split(b["key"])])), [WHOLE], {"key"}),
    "layers": (dropped(*(key_of(lambda key, i=i: jax.random.split(key, 3)[i]) for i in range(3))), [WHOLE] * 3, {"key"}),
    "scanned keys": (scanned_keys, [ROW] * 3, {"key"}),
    "scanned numbers": (scanned(lambda b, i, group: jax.random.fold_in(b["key"], i)), [ROW] * 3, {"key"}),
    "steps": (dropped(key_of_step(0), key_of_step(1)), [WHOLE] * 2, {"key", "step"}),
    "sample numbers": (of_samples(lambda b, i, *_: jax.random.fold_in(b["key"], i)), [WHOLE], {"key"}),
    "sample keys": (of_samples(lambda b, i, group, key, raw: jax.random.fold_in(key, group)), [WHOLE], {"keys", "groups"}),
    "sample raw": (of_samples(lambda b, i, group, key, raw: raw), [WHOLE], {"raw"}),
    "raw rows": (dropped(lambda b: mask(b["raw"][0]), lambda b: mask(b["raw"][1])), [WHOLE] * 2, {"raw"}),
    "stacked raw": (lambda w, b: jax.vmap(lambda x, key: drop(mask(key, SIZE), x))(w[:2], jnp.stack([b["raw"][1], b["raw"][3]])).sum(),
                    [(2, SIZE)], {"raw"}),
    "seeds": (dropped(lambda b: mask(jax.random.key(0)), lambda b: mask(jax.random.PRNGKey(1))), [WHOLE] * 2, set()),
    "hash": (dropped(lambda b: hashed(jax.random.key_data(b["key"]), EVERY)), [WHOLE], {"key"}),
    "hash of raw": (dropped(lambda b: hashed(b["raw"][0], EVERY)), [WHOLE], {"raw"}),
    "hash of constant": (dropped(lambda b: hashed(RAW, EVERY)), [WHOLE], set()),
    "numbers": (lambda w, b: jnp.where(mask(b["key"], SIZE), jnp.arange(float(SIZE)), 0).sum() + w.sum(), [ROW], {"key"}),
    "repeated": (dropped(lambda b: jax.lax.lt(jax.random.uniform(b["key"], (SIZE, 1), "float32"), jax.lax.full(WHOLE, jnp.float32(RATE)))), [(SIZE, 1)],
                 {"key"}),
    "column": (lambda w, b: (mask(b["key"]).astype(w.dtype) * w[:, :1]).sum(), [WHOLE], {"key"}),
}


def bits(key, shape, kind, shift=0):
    return jax.random.bits(key, shape, kind) >> shift


# {name: what keeps an element, of a key and a shape}
SHARES = {
    "above": lambda key, shape: bits(key, shape, "uint32", 30) > 1,
    "up to": lambda key, shape: bits(key, shape, "uint32", 30) <= 1,
    "below": lambda key, shape: bits(key, shape, "uint32", 30) < 3,
    "from": lambda key, shape: 2 >= bits(key, shape, "uint32", 30),
    "bytes": lambda key, shape: bits(key, shape, "uint8") <= 127,
    "words": lambda key, shape: bits(key, shape, "uint32") <= 2**31 - 1,
    "lowest": lambda key, shape: bits(key, shape, "uint8") & 3 == 0,
    "floats": lambda key, shape: bits(key, shape, "uint32", 29).astype(jnp.float32) / 8 < 0.7,
    "bf16": lambda key, shape: jax.random.uniform(key, shape, jnp.bfloat16) <= 0.905,
    "f16": lambda key, shape: jax.random.uniform(key, shape, jnp.float16) >= 0.25,
}
