"""The rules for primitives of JAX: a method for each, which writes the ops that it becomes."""

import math
import operator

import jax
import numpy

from dtc.jax import identities, shift as shifts
from dtc.jax.values import Value, first_column, ints, is_number, scalar_of, source_of_shape

# Primitives that become one operator of another name or the same.
SIMPLE = {"exp": "exp", "log": "log", "tanh": "tanh", "logistic": "sigmoid", "sqrt": "sqrt", "rsqrt": "rsqrt", "neg": "neg",
          "square": "square", "min": "minimum", "eq": "eq", "ne": "ne", "lt": "lt",
          "le": "le", "gt": "gt", "ge": "ge"}
NAMES = ("self", "other")


class Rules:
    """The part of Printer (capture.py) that writes one equation: a method on_NAME for each primitive that SIMPLE does not have."""

    def splat_of(self, value):
        """The number that all elements are; None where they differ or are not known."""
        if value.known is not None:
            return scalar_of(value)
        name, operands = value.origin or (None, ())
        if name in ("broadcast_in_dim", "reshape", "squeeze", "expand_dims"):
            return self.splat_of(operands[0])
        numbers = [self.splat_of(each) for each in operands] if name in ("add", "sub", "mul") else [None]
        if None in numbers:
            return None
        return {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[name](*numbers)

    def factor_of(self, value):
        """(y, number) of a value that is y times a number, as the last equation says."""
        name, operands = value.origin or (None, ())
        x, *others = operands or [value]
        if name == "div" and (divisor := self.splat_of(others[0])):
            return x, 1 / divisor
        for y, other in ((x, *others), (*others, x)) if name == "mul" else ():
            if (number := self.splat_of(other)) is not None:
                return y, number
        return value, 1

    # Arithmetic.

    def with_number(self, eqn, x, y, op, reversed_op=None):
        """x op y, where one may be a number."""
        if y.known is not None:
            return self.emit(eqn, op, {"self": x}, {"other": scalar_of(y)})
        if x.known is not None and reversed_op:
            return self.emit(eqn, reversed_op, {"self": y}, {"other": scalar_of(x)})
        return self.emit(eqn, op, {"self": x, "other": y})

    # Shardings.

    def on_sharding_constraint(self, eqn, x):
        """The value, whose dimensions have names by which --shard splits them."""
        axes = self.shardings.axes_of("with_sharding_constraint()", eqn.params["sharding"], x.ndim)
        if axes is None or x.known is not None:
            return x
        if x.is_argument:
            self.shardings.add_dims(self.argument_names[x.name], axes)
            return x
        return self.emit(eqn, "alias", {"self": x}, {"axes": self.shardings.logical(axes)})

    def on_shard_map(self, eqn, *operands):
        self.fail(eqn, "jax.shard_map() says what each device computes, with collectives of its own; write the function for whole "
                       "arrays, which dtc splits by their shardings and by jax.lax.with_sharding_constraint()")

    def on_add(self, eqn, x, y):
        return self.with_number(eqn, x, y, "add", "add")

    def on_sub(self, eqn, x, y):
        return self.with_number(eqn, x, y, "sub", "rsub")

    def on_mul(self, eqn, x, y):
        return self.with_number(eqn, x, y, "mul", "mul")

    def on_div(self, eqn, x, y):
        if not x.is_float:
            self.fail(eqn, "integers are divided, for which there is no rule")
        return self.with_number(eqn, x, y, "div")

    def on_max(self, eqn, x, y):
        for number, other in ((x, y), (y, x)):
            if number.known is not None and number.is_float and number.known == -numpy.inf:
                return other
        return self.emit(eqn, "maximum", {"self": x, "other": y})

    def on_integer_pow(self, eqn, x):
        return self.emit(eqn, "pow", {"self": x}, {"exponent": float(eqn.params["y"])})

    def on_pow(self, eqn, x, y):
        if x.fixed and y.fixed:
            return self.emit(eqn, "pow", {"self": x, "exponent": y})
        if y.known is None:
            self.fail(eqn, "the exponent is no number; write exp(exponent * log(x))")
        return self.emit(eqn, "pow", {"self": x}, {"exponent": float(y.known)})

    def on_log1p(self, eqn, x):
        # log(u) + (x - (u - 1)) / u with u = 1 + x: the second term restores the loss from the rounding of u. Where u is less than 1/2,
        # it is not rounded, and the second term is 0, also for u = 0.
        u = self.emit(eqn, "add", {"self": x}, {"other": 1.0})
        lost = self.emit(eqn, "sub", {"self": x, "other": self.emit(eqn, "sub", {"self": u}, {"other": 1.0})})
        divisor = self.emit(eqn, "clamp", {"self": u}, {"min": 0.5})
        return self.emit(eqn, "add", {"self": self.emit(eqn, "log", {"self": u}),
                                      "other": self.emit(eqn, "div", {"self": lost, "other": divisor})})

    def on_exp2(self, eqn, x):
        return self.emit(eqn, "exp", {"self": self.emit(eqn, "mul", {"self": x}, {"other": math.log(2)})})

    def on_sin(self, eqn, x):
        if not x.fixed:
            self.fail(eqn, f"the primitive '{eqn.primitive.name}' has a rule for values that are known alone, such as rotary angles")
        return self.emit(eqn, eqn.primitive.name, {"self": x})

    on_cos = on_sin

    def on_expm1(self, eqn, x):
        # tanh(x / 2) (exp(x) + 1), which loses nothing near 0.
        half = self.emit(eqn, "tanh", {"self": self.emit(eqn, "mul", {"self": x}, {"other": 0.5})})
        return self.emit(eqn, "mul", {"self": half, "other": self.emit(eqn, "add", {"self": self.emit(eqn, "exp", {"self": x})},
                                                                       {"other": 1.0})})

    def on_abs(self, eqn, x):
        # The derivative at 0 is 1, as JAX has it, and not that of the operator.
        if not x.trained:
            return self.emit(eqn, "abs", {"self": x})
        positive = self.emit(eqn, "ge", {"self": x}, {"other": 0.0}, x.aval.update(dtype=numpy.dtype(bool)))
        return self.emit(eqn, "where", {"condition": positive, "self": x, "other": self.emit(eqn, "neg", {"self": x})})

    def on_sign(self, eqn, x):
        # logsumexp() computes it and does not use it.
        return Value(None, eqn.outvars[0].aval)

    def on_clamp(self, eqn, low, x, high):
        if low.known is None or high.known is None:
            self.fail(eqn, "a bound of lax.clamp() is no number; use jnp.minimum() and jnp.maximum()")
        return self.emit(eqn, "clamp", {"self": x}, {"min": scalar_of(low), "max": scalar_of(high)})

    def on_and(self, eqn, x, y):
        return self.logic(eqn, "logical_and", {"self": x, "other": y})

    def on_or(self, eqn, x, y):
        return self.logic(eqn, "logical_or", {"self": x, "other": y})

    def on_not(self, eqn, x):
        return self.logic(eqn, "logical_not", {"self": x})

    def logic(self, eqn, op, operands):
        if eqn.outvars[0].aval.dtype != numpy.bool_:
            self.fail(eqn, f"the primitive '{eqn.primitive.name}' is of the bits of integers, for which there is no rule")
        return self.emit(eqn, op, operands)

    def on_select_n(self, eqn, which, *cases):
        if which.known is not None:
            return cases[int(which.known)]
        if len(cases) != 2 or which.aval.dtype != numpy.bool_:
            self.fail(eqn, f"a choice among {len(cases)} cases has no rule; write it with jnp.where")
        return self.emit(eqn, "where", {"condition": which, "self": cases[1], "other": cases[0]})

    def on_scatter(self, eqn, x, _, update):
        if x.shape or update.shape:
            self.fail(eqn, "elements of a tensor are set (.at[].set()), which has no rule; choose between tensors by jnp.where")
        return update

    def on_is_finite(self, eqn, x):
        infinity = Value(None, jax.core.ShapedArray((), x.aval.dtype), known=numpy.asarray(numpy.inf, x.aval.dtype))
        return self.emit(eqn, "lt", {"self": self.emit(eqn, "abs", {"self": x}, aval=x.aval), "other": infinity})

    def on_stop_gradient(self, eqn, x):
        if not x.trained:
            return x
        if x.shift:
            self.fail_stopped(eqn)
        self.count += 1
        return Value(x.name, x.aval, shift=shifts.of_stopped(self.count, x.shape))

    def on_convert_element_type(self, eqn, x):
        return x if x.aval.dtype == eqn.outvars[0].aval.dtype else self.emit(eqn, "_to_copy", {"self": x})

    def on_copy(self, eqn, x):
        return x

    on_name = on_copy  # of jax.ad_checkpoint.checkpoint_name()

    # Shapes.

    def view(self, eqn, x, shape):
        return x if x.shape == tuple(shape) else self.emit(eqn, "view", {"self": x}, {"size": ints(shape)},
                                                           x.aval.update(shape=tuple(shape)))

    def on_broadcast_in_dim(self, eqn, x, *rest):
        shape, places = eqn.params["shape"], eqn.params["broadcast_dimensions"]
        if x.known is not None:
            return self.emit(eqn, "full", {}, {"size": ints(shape), "fill_value": scalar_of(x)})
        return self.spread(eqn, x, shape, places)

    def spread(self, eqn, x, shape, places):
        """x with its dimensions at some places of a shape."""
        x = self.view(eqn, x, [x.shape[places.index(i)] if i in places else 1 for i in range(len(shape))])
        return x if x.shape == tuple(shape) else self.emit(eqn, "expand", {"self": x}, {"size": ints(shape)},
                                                           x.aval.update(shape=tuple(shape)))

    def reshaped(self, eqn, x, shape):
        """A reshape; only one that adds or removes dimensions of size 1 keeps a shift."""
        value = self.view(eqn, x, shape)
        result = Value(value.name, value.aval, value.known)
        if x.shift:
            if [each for each in x.shape if each != 1] != [each for each in shape if each != 1]:
                self.fail_stopped(eqn)
            left = iter([i for i, each in enumerate(x.shape) if each != 1])
            result.shift = shifts.moved(x.shift, [next(left) if each != 1 else None for each in shape])
        return result

    def on_reshape(self, eqn, x, *_):
        if eqn.params.get("dimensions") is not None:
            self.fail(eqn, "a reshape with an order of dimensions has no rule; transpose first")
        return self.reshaped(eqn, x, eqn.outvars[0].aval.shape)

    def on_squeeze(self, eqn, x):
        return self.reshaped(eqn, x, eqn.outvars[0].aval.shape)

    on_expand_dims = on_squeeze

    def on_transpose(self, eqn, x):
        return self.emit(eqn, "permute", {"self": x}, {"dims": ints(eqn.params["permutation"])})

    def on_concatenate(self, eqn, *parts):
        return self.emit(eqn, "cat", {f"tensors.{i}": each for i, each in enumerate(parts)},
                         {"dim": int(eqn.params["dimension"])})

    def on_stack(self, eqn, *parts):
        return self.emit(eqn, "stack", {f"tensors.{i}": each for i, each in enumerate(parts)}, {"dim": int(eqn.params["axis"])})

    def on_tile(self, eqn, x):
        pairs = list(zip(eqn.params["reps"], x.shape, strict=True))
        x = self.view(eqn, x, [each for _, size in pairs for each in (1, size)])
        wide = x.aval.update(shape=tuple(each for pair in pairs for each in pair))
        return self.view(eqn, self.emit(eqn, "expand", {"self": x}, {"size": ints(wide.shape)}, wide), eqn.outvars[0].aval.shape)

    def on_slice(self, eqn, x):
        strides = eqn.params["strides"] or (1,) * x.ndim
        for dim, (begin, end, stride) in enumerate(zip(eqn.params["start_indices"], eqn.params["limit_indices"], strides)):
            if (begin, end, stride) != (0, x.shape[dim], 1):
                shape = list(x.shape)
                shape[dim] = (end - begin + stride - 1) // stride
                x = self.emit(eqn, "slice", {"self": x}, {"dim": dim, "start": int(begin), "end": int(end), "step": int(stride)},
                              x.aval.update(shape=tuple(shape)))
        return x

    def on_dynamic_slice(self, eqn, x, *begins):
        if any(each.known is None for each in begins):
            self.fail(eqn, "a slice begins at an index that depends on data, which has no rule")
        for dim, (begin, size) in enumerate(zip(begins, eqn.params["slice_sizes"])):
            first = min(max(int(begin.known), 0), x.shape[dim] - size)
            if size != x.shape[dim]:
                x = self.emit(eqn, "slice", {"self": x}, {"dim": dim, "start": first, "end": first + size, "step": 1},
                              x.aval.update(shape=x.shape[:dim] + (size,) + x.shape[dim + 1:]))
        return x

    def split(self, eqn, x):
        parts, begin = [], 0
        for i, (size, variable) in enumerate(zip(ints(eqn.params["sizes"]), eqn.outvars)):
            if x.shift:
                self.fail_stopped(eqn)
            part = self.emit(eqn, "slice", {"self": x}, {"dim": int(eqn.params["axis"]), "start": begin, "end": begin + size,
                                                         "step": 1}, variable.aval)
            self.mark(part, [x])
            part.made = ("split", identities.bound(eqn, i), [x])
            parts.append(part)
            begin += size
        return parts

    def on_pad(self, eqn, x, value):
        low, high, inner = zip(*eqn.params["padding_config"])
        if any(inner) or value.known is None:
            self.fail(eqn, "a tensor is padded between elements, or with what is no number, for which there is no rule")
        amounts = [each for pair in reversed(list(zip(low, high))) for each in pair]
        return self.emit(eqn, "pad", {"self": x}, {"pad": ints(amounts), "mode": "constant", "value": float(value.known)})

    def on_iota(self, eqn, *_):
        shape, dim = eqn.params["shape"], eqn.params["dimension"]
        aval = eqn.outvars[0].aval
        row = self.emit(eqn, "arange", {}, {"end": int(shape[dim])}, aval.update(shape=(shape[dim],)))
        row = self.view(eqn, row, [size if i == dim else 1 for i, size in enumerate(shape)])
        return row if row.shape == tuple(shape) else self.emit(eqn, "expand", {"self": row}, {"size": ints(shape)})

    # Reductions, products and lookups.

    def reduction(self, eqn, x, op):
        return self.emit(eqn, op, {"self": x}, {"dim": ints(eqn.params["axes"]), "keepdim": False}) if eqn.params["axes"] else x

    def on_reduce_sum(self, eqn, x):
        return self.reduction(eqn, x, "sum")

    def on_reduce_max(self, eqn, x):
        return self.reduction(eqn, x, "amax")

    def on_reduce_min(self, eqn, x):
        return self.reduction(eqn, x, "amin")

    def on_dot_general(self, eqn, x, y):
        if x.shift or y.shift:
            self.fail_stopped(eqn)
        (left, right), (left_batch, right_batch) = eqn.params["dimension_numbers"]
        letters = iter("abcdefghijklmnopqrstuvwxyz")
        first, second = [None] * x.ndim, [None] * y.ndim
        for i, j in [*zip(left_batch, right_batch), *zip(left, right)]:
            first[i] = second[j] = next(letters)
        first, second = ([each or next(letters) for each in term] for term in (first, second))
        result = ([first[i] for i in left_batch] + [each for i, each in enumerate(first) if i not in (*left, *left_batch)]
                  + [each for i, each in enumerate(second) if i not in (*right, *right_batch)])
        kind = eqn.outvars[0].aval
        x, y = (self.converted(eqn, each, kind.dtype) for each in (x, y))
        equation = f"{''.join(first)},{''.join(second)}->{''.join(result)}"
        return self.emit(eqn, "einsum", {"tensors.0": x, "tensors.1": y}, {"equation": equation})

    def converted(self, eqn, x, dtype):
        return x if x.aval.dtype == dtype else self.emit(eqn, "_to_copy", {"self": x}, aval=x.aval.update(dtype=dtype))

    def on_gather(self, eqn, x, indices):
        numbers, sizes = eqn.params["dimension_numbers"], tuple(eqn.params["slice_sizes"])
        result = eqn.outvars[0].aval
        last = x.ndim - 1
        place = source_of_shape(indices) if indices.shape == (1,) else indices
        if place.known is not None and not place.shape and len(numbers.start_index_map) == 1 \
                and numbers.collapsed_slice_dims == numbers.start_index_map:
            return self.select(eqn, x, numbers.start_index_map[0], int(place.known), sizes)
        if len(numbers.start_index_map) > 1 and numbers.start_index_map[0] == 0 and sizes == (1, *x.shape[1:]) \
                and not numbers.collapsed_slice_dims and not numbers.operand_batching_dims and not x.shift \
                and (column := first_column(indices)) is not None \
                and numbers.offset_dims == tuple(range(column.ndim - 1, len(result.shape))):
            # Rows, as jax.vmap leaves them: the other indices are 0, the begin of all of a dimension.
            table = self.emit(eqn, "embedding", {"weight": x, "indices": self.not_negative(eqn, column, x.shape[0],
                                                                                           column.shape[:-1])},
                              aval=x.aval.update(shape=(*column.shape[:-1], *x.shape[1:])))
            return self.view(eqn, table, result.shape)
        rows = self.view(eqn, indices, indices.shape[:-1]) if indices.known is None else None
        if rows is not None and not numbers.operand_batching_dims and numbers.start_index_map == (0,) \
                and numbers.collapsed_slice_dims == (0,) and sizes == (1, *x.shape[1:]) \
                and numbers.offset_dims == tuple(range(rows.ndim, len(result.shape))) and not x.shift:
            return self.emit(eqn, "embedding", {"weight": x, "indices": self.not_negative(eqn, indices, x.shape[0], rows.shape)})
        if rows is not None and numbers.start_index_map == numbers.collapsed_slice_dims == (last,) and not numbers.offset_dims \
                and numbers.operand_batching_dims == numbers.start_indices_batching_dims == tuple(range(last)) \
                and rows.shape == (*x.shape[:-1], 1):
            value = self.emit(eqn, "gather", {"self": x, "index": self.not_negative(eqn, indices, x.shape[last], rows.shape)},
                              {"dim": last})
            if x.shift and x.shift.dims[last] is not None:
                self.fail_stopped(eqn)
            return Value(value.name, value.aval, shift=x.shift)
        return self.fail(eqn, "elements are looked up in a way that has no rule; expected table[indices] of rows, or "
                              "jnp.take_along_axis(x, indices[..., None], axis=-1)")

    def select(self, eqn, x, axis, index, sizes):
        """One element of a dimension, which is removed, and all of the others."""
        if sizes != x.shape[:axis] + (1,) + x.shape[axis + 1:] or not 0 <= index < x.shape[axis]:
            self.fail(eqn, f"element {index} of dimension {axis} is looked up in a way that has no rule")
        value = self.emit(eqn, "select", {"self": x}, {"dim": axis, "index": index})
        if x.shift and x.shift.dims[axis] is not None:
            self.fail_stopped(eqn)
        value.shift = x.shift and shifts.moved(x.shift, [i for i in range(x.ndim) if i != axis])
        return value

    def not_negative(self, eqn, indices, size, shape):
        """The indices. Where they are an input, without the change of negative ones to count from the end: dtc refuses data with
        such."""
        source = source_of_shape(indices)
        if source.origin and source.origin[0] == "select_n":
            which, same, wrapped = source.origin[1]
            if which.origin and which.origin[0] == "lt" and which.origin[1][0] is same and is_number(which.origin[1][1], 0) \
                    and wrapped.origin and wrapped.origin[0] == "add" and wrapped.origin[1][0] is same \
                    and is_number(wrapped.origin[1][1], size) and source_of_shape(same).is_argument:
                return self.view(eqn, same, shape)
        return self.view(eqn, indices, shape)
