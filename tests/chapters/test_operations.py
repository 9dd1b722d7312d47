"""Chapter 03's operations: hard cases worked out by hand, and what is refused. Beside PyTorch: tests/pytorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gradwright
from gradwright.chapters import autodiff, operations
from gradwright.chapters.operations import arange, cat, einsum, ones, pad, rand, stack, tensor, where, zeros

F = gradwright.nn.functional
nan, inf = math.nan, math.inf


def leaf(*values, dtype=np.float64):
    return tensor(np.array(values, dtype), requires_grad=True)


def gradient(program, *inputs, seed=None):
    out = program(*inputs)
    out.backward(None if seed is None else tensor(np.array(seed, out.dtype)))
    grads = [t.grad.tolist() for t in inputs]
    return grads if len(grads) > 1 else grads[0]


# Ties and kinks


def test_ties_share_evenly_over_everything_and_the_first_takes_all_along_an_axis():
    assert gradient(lambda x: x.max(), leaf(2, 2, 1)) == [0.5, 0.5, 0]
    assert gradient(lambda x: x.amax(0), leaf(2, 2, 1)) == [0.5, 0.5, 0]
    assert gradient(lambda x: x.amin(), leaf(2, 1, 1, 1)) == [0, 1 / 3, 1 / 3, 1 / 3]
    assert gradient(lambda x: x.max(0).values, leaf(2, 2, 1)) == [1, 0, 0]
    assert gradient(lambda x: x.min(-1).values, leaf(2, 1, 1)) == [0, 1, 0]


def test_the_maximum_of_equal_tensors_is_shared():
    assert gradient(gradwright.maximum, leaf(1, 5), leaf(1, 2), seed=[4, 4]) == [[2, 4], [2, 0]]
    assert gradient(lambda x: x.maximum(x), leaf(3)) == [1]
    assert gradient(lambda x: x.minimum(2), leaf(2, 3, 1), seed=[1, 1, 1]) == [0.5, 0, 1]


def test_slopes_at_kinks():
    assert gradient(lambda x: x.relu(), leaf(-1, 0, 2), seed=[1, 1, 1]) == [0, 0, 1]
    assert gradient(lambda x: x.abs(), leaf(-2, 0, nan), seed=[1, 1, 1]) == [-1, 0, 0]
    assert gradient(lambda x: x.clamp(0, 1), leaf(-1, 0, 0.5, 1, 2), seed=[1] * 5) == [0, 1, 1, 1, 0]
    assert gradient(lambda x: x.norm(), leaf(0, 0)) == [0, 0]
    assert gradient(lambda x: x.std(), leaf(2, 2)) == [0, 0]


def test_an_infinite_gradient_stops_where_relu_is_flat():
    with np.errstate(divide="ignore"):
        assert gradient(lambda x: x.relu().sqrt(), leaf(-1, 4), seed=[1, 1]) == [0, 0.25]


def test_where_chooses_gradients_and_never_multiplies_them():
    x = leaf(0, 4)
    with np.errstate(divide="ignore"):
        out = where(x > 0, 1.0, x).sqrt()
        assert gradient(lambda x: out, x, seed=[1, 1]) == [inf, 0]


# Reductions


def test_variance_by_hand():
    assert gradient(lambda x: x.var(), leaf(1, 2, 6), seed=3) == [-6, -3, 9]
    assert gradient(lambda x: x.var(correction=0), leaf(1, 3)) == [-1, 1]
    with np.errstate(invalid="ignore"):
        assert math.isnan(leaf(5).var().item())


def test_products_with_zeros():
    assert gradient(lambda x: x.prod(), leaf(2, 0, 5)) == [0, 10, 0]
    assert gradient(lambda x: x.prod(), leaf(0, 3, 0)) == [0, 0, 0]
    assert gradient(lambda x: x.prod(0), leaf([2, 0], [3, 4]), seed=[1, 1]) == [[3, 4], [2, 0]]


def test_running_sums_go_back_from_the_end():
    assert gradient(lambda x: x.cumsum(0), leaf(1, 1, 1), seed=[1, 10, 100]) == [111, 110, 100]


def test_logsumexp_and_softmax_do_not_overflow():
    assert leaf(1000, 0).logsumexp(0).item() == 1000
    assert leaf(-inf, -inf).logsumexp(0).item() == -inf
    assert gradient(lambda x: -x.log_softmax(0)[1], leaf(1000, 0)) == [1, -1]
    assert leaf(1000, 0).softmax(0).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_at_the_ends_of_the_number_line(dtype):
    cases = {(nan, 0): [nan, nan], (inf, 0): [nan, nan], (-inf, 0): [0, 1], (0, 5000): [0, 1], (-300, -300): [0.5, 0.5]}
    for x, shares in {**cases, (0,): [1], (): []}.items():
        column, columns = np.array(x, dtype), np.repeat(np.array([x], dtype).T, 1000, 1)
        np.testing.assert_array_equal(tensor(column).softmax(0).numpy(), shares)
        np.testing.assert_array_equal(tensor(columns).softmax(0).numpy().T, [shares] * 1000)
    assert tensor(np.array(3, dtype)).softmax(0).item() == 1


def test_softmax_gradients_of_a_row_add_up_to_zero():
    x = rand(3, 5, dtype=np.float64).requires_grad_()
    (x.softmax(1) * arange(5)).sum().backward()
    assert x.grad.sum(1).allclose(zeros(3, dtype=np.float64), atol=1e-12)


def test_a_row_of_minus_infinity_is_nan_without_a_warning():
    assert np.isnan(leaf(-inf, -inf).softmax(0).detach().numpy()).all()


# Shapes


def test_a_reshape_after_a_permute_goes_back_the_same_way():
    x = tensor(np.arange(24.0).reshape(1, 3, 8), requires_grad=True)
    heads = x.reshape(1, 3, 4, 2).permute(0, 2, 1, 3)
    heads.backward(heads.detach())
    assert x.grad.tolist() == x.tolist()


def test_repeats_lie_apart_or_side_by_side():
    seed = [1, 2, 3, 4, 5, 6]
    assert gradient(lambda x: x.repeat(2), leaf(0, 0, 0), seed=seed) == [5, 7, 9]
    assert gradient(lambda x: x.repeat_interleave(2), leaf(0, 0, 0), seed=seed) == [3, 7, 11]
    counts = tensor([3, 0, 3])
    assert gradient(lambda x: x.repeat_interleave(counts, 0), leaf(0, 0, 0), seed=seed) == [6, 0, 15]


def test_joined_tensors_get_their_own_parts_back():
    assert gradient(lambda a, b: cat([a, b, a]), leaf(1), leaf(2, 3), seed=[1, 2, 3, 4]) == [[5], [2, 3]]
    assert gradient(lambda a, b: stack([a, b], 1), leaf(1, 2), leaf(3, 4), seed=[[1, 2], [3, 4]]) == [[1, 3], [2, 4]]


def test_parts_are_views_and_the_last_may_be_smaller():
    x = arange(5)
    assert [part.tolist() for part in x.split(2)] == [[0, 1], [2, 3], [4]]
    assert [part.tolist() for part in x.chunk(4)] == [[0, 1], [2, 3], [4]]
    assert all(part.storage is x.storage for part in x.split([4, 1]))


def test_pad_counts_from_the_last_axis_and_cuts_where_negative():
    assert pad(ones(1, 2), (1, 0, 0, 1)).tolist() == [[0, 1, 1], [0, 0, 0]]
    assert gradient(lambda x: pad(x, (-1, 2)), leaf(7, 8), seed=[3, 4, 5]) == [0, 3]


def test_a_copy_shares_no_memory_even_where_nothing_moves():
    x = ones(1, 3)
    for copy in (x.flip(0), x.flip(()), x.roll(0, 0), x.repeat(1, 1), x.tril(5)):
        assert not np.shares_memory(copy.numpy(), x.numpy())


# Indexing


def test_a_place_that_is_named_twice_gets_both_gradients():
    assert gradient(lambda x: x[[0, 0, 2]].sum(), leaf(1, 2, 3)) == [2, 0, 1]
    assert gradient(lambda x: x[tensor([1, -2, 0])], leaf(1, 2, 3), seed=[1, 10, 5]) == [5, 11, 0]
    assert gradient(lambda x: x.gather(0, tensor([2, 2, 0])), leaf(1, 2, 3), seed=[1, 10, 5]) == [5, 0, 11]


def test_numbers_and_slices_make_the_view_first():
    """NumPy alone would put the places in front here."""
    x = tensor(np.arange(24).reshape(2, 3, 4))
    assert x[1, :, [0, 2]].tolist() == [[12, 14], [16, 18], [20, 22]]


def test_an_index_may_be_changed_after_it_was_used():
    x, ids = leaf(1, 2, 3), tensor([0, 0, 2])
    out = x[ids]
    ids.zero_()
    out.sum().backward()
    assert x.grad.tolist() == [2, 0, 1]


def test_a_condition_may_not_be_changed_before_backward():
    a, mask = leaf(1, 2), tensor([True, False])
    out = where(mask, a, 0.0)
    mask.copy_(tensor([False, True]))
    with pytest.raises(RuntimeError, match="changed in place"):
        out.sum().backward()


def test_writing_by_mask_and_by_places():
    x, y = leaf(1, 2, 3, 4), leaf(7)
    z = x * 1
    z[x > 2] = y
    z[[0, 0]] = tensor([5.0, 6.0])
    z.backward(tensor([1.0, 10.0, 100.0, 1000.0], dtype=np.float64))
    assert z.tolist() == [6, 2, 7, 7]
    assert (x.grad.tolist(), y.grad.tolist()) == ([0, 10, 0, 0], [1100])


def test_sorted_values_know_where_they_came_from():
    x = leaf(3, 1, 2)
    values, places = x.sort()
    values.backward(tensor([1.0, 10.0, 100.0], dtype=np.float64))
    assert (places.tolist(), x.grad.tolist()) == ([1, 2, 0], [100, 1, 10])
    assert tensor([1, 2, 1, 2]).sort(descending=True).indices.tolist() == [1, 3, 0, 2]
    assert tensor([5, nan, 7]).topk(2).values.tolist()[1] == 7


# Products


def test_einsum_gives_diagonals_and_axes_of_one_operand_their_gradients():
    assert gradient(lambda x: einsum("ii", x), leaf([1, 2], [3, 4])) == [[1, 0], [0, 1]]
    assert gradient(lambda a, b: einsum("ij,k->k", a, b), leaf([1, 2]), leaf(5, 6), seed=[1, 1]) == [[[11, 11]], [3, 3]]


def test_a_vector_times_a_stack_of_matrices():
    a, b = leaf(1, 2), tensor(np.ones((3, 2, 2)), requires_grad=True)
    (a @ b).sum().backward()
    assert a.grad.tolist() == [6, 6]
    assert b.grad.tolist() == [[[1, 1], [2, 2]]] * 3


def test_addmm_with_beta_zero_does_not_look_at_its_input():
    assert tensor([nan, nan]).addmm(ones(1, 1), ones(1, 2), beta=0).tolist() == [[1, 1]]


def test_addmm_is_one_operation_and_writes_into_none_of_its_inputs():
    bias, a, b = leaf(1, 2), leaf([1, 2], [3, 4]), leaf([1, 0], [0, 1])
    out = bias.addmm(a, b)
    assert out.grad_fn.targets == [bias, a, b]
    assert (bias.tolist(), a.tolist(), out.tolist()) == ([1, 2], [[1, 2], [3, 4]], [[2, 4], [4, 6]])


def test_addmm_of_whole_numbers():
    a = tensor([[1, 2]])
    assert tensor([10]).addmm(a, a.T, beta=2, alpha=3).tolist() == [[35]]


# Dtypes

EVERY = {
    **{name: getattr(operations.Tensor, name) for name in ("sigmoid", "relu", "rsqrt", "abs", "square", "std", "prod")},
    **{name: getattr(F, name) for name in ("gelu", "silu", "softplus")},
    "clamp": lambda x: x.clamp(0.1, 0.9),
    "amax": lambda x: x.amax(0),
    "logsumexp": lambda x: x.logsumexp(0),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "cumsum": lambda x: x.cumsum(1),
    "norm": lambda x: x.norm(1),
    "matmul": lambda x: x @ x.T @ x[:, 0],
    "where": lambda x: where(x > 0.5, x, 0.0),
    "take": lambda x: x[:, [0, 0]],
    "einsum": lambda x: einsum("ij,ij->i", x, x),
    "maximum": lambda x: x.maximum(0.5),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 0),
    "pad": lambda x: pad(x, (1, 1), value=2.5),
}


@pytest.mark.parametrize("name", list(EVERY))
def test_float32_in_float32_gradient_out_before_the_machine_casts(name, monkeypatch):
    given = []
    fit = autodiff.fit

    def watched(operation, g, shape, dtype):
        given.append(np.asarray(g).dtype)
        return fit(operation, g, shape, dtype)

    monkeypatch.setattr(autodiff, "fit", watched)
    x = (rand(2, 3) + 0.1).requires_grad_()
    out = EVERY[name](x)
    assert out.dtype == np.float32
    out.sum().backward()
    assert x.grad.dtype == np.float32
    assert set(given) <= {np.dtype(np.float32)}


@pytest.mark.parametrize("name", list(EVERY))
def test_small_steps_agree(name):
    x = rand(2, 3, dtype=np.float64, generator=gradwright.Generator(4)) + 0.11
    assert gradwright.autograd.gradcheck(EVERY[name], x.requires_grad_())


# What is not offered, or does not fit


REFUSED = {
    "norm with p=3 is not offered": lambda: ones(2).norm(3),
    "unexpected keyword argument 'unbiased'": lambda: ones(2).var(unbiased=False),
    "prod over dim": lambda: ones(2, 2).prod((0, 1)),
    "clamp takes a number for min": lambda: ones(2).clamp(ones(2)),
    "clamp needs a bound": lambda: ones(2).clamp(),
    "pad with mode='reflect' is not offered": lambda: pad(ones(3), (1, 1), mode="reflect"),
    "gelu with approximate='fast' is not offered": lambda: F.gelu(ones(1), approximate="fast"),
    "softmax is for floats and this tensor holds int64": lambda: arange(3).softmax(0),
    "where takes a tensor of truth values": lambda: where(ones(2), 1.0, 2.0),
    "masked_fill takes one number": lambda: ones(2).masked_fill(ones(2) > 0, ones(2)),
    "gather: index -1 is out of range": lambda: ones(3).gather(0, tensor([-1])),
    "index_select: index 3 is out of range": lambda: ones(3).index_select(0, tensor([3])),
    "gather along dim 0 of shape": lambda: ones(2, 2).gather(0, tensor([0])),
    "an index is made of whole numbers": lambda: ones(3)[tensor([0.5])],
    "one_hot: id 3 is not among 3 classes": lambda: F.one_hot(tensor([3]), 3),
    "one_hot of no ids": lambda: F.one_hot(zeros(0, dtype=np.int64)),
    "topk of 4 elements": lambda: ones(3).topk(4),
    "all other axes must agree": lambda: cat([ones(2, 3), ones(2, 4)]),
    "cat of no tensors": lambda: cat([]),
    "all must be the same": lambda: stack([ones(2), ones(3)]),
    "the sum is not 3": lambda: ones(3).split([1, 1]),
    "mm wants 2 and 2 axes": lambda: ones(2).mm(ones(2, 2)),
    "addmm wants 2 and 2 axes": lambda: ones(2).addmm(ones(2, 2), ones(2)),
    "shapes (3,) and (2, 2) do not broadcast": lambda: ones(3).addmm(ones(2, 2), ones(2, 2)),
    "addmm: a tensor of shape (1, 2, 2) cannot": lambda: ones(1, 2, 2).addmm(ones(2, 2), ones(2, 2)),
    "addmm of float32 and float64": lambda: ones(2).addmm(ones(2, 2, dtype=np.float64), ones(2, 2, dtype=np.float64)),
    "matmul of float32 and float64": lambda: ones(2).addmm(ones(2, 2), ones(2, 2, dtype=np.float64)),
    "axis -1 of the first is 2": lambda: ones(2).addmm(ones(2, 2), ones(3, 2)),
    "whole numbers take whole numbers only": lambda: tensor([1]).addmm(tensor([[1]]), tensor([[1]]), beta=0.5),
    "bmm of": lambda: ones(1, 2, 2).bmm(ones(3, 2, 2)),
    "does not name the 2 axes": lambda: einsum("i->i", ones(2, 2)),
    "names 2 operands and got 1": lambda: einsum("i,i", ones(2)),
    "use letters": lambda: einsum("i1->i", ones(2, 2)),
    "tril is for matrices": lambda: ones(3).tril(),
    "repeat": lambda: ones(2, 2).repeat(2),
    "the norm with p=inf over axis 0": lambda: zeros(0).norm(inf),
    "beside a tensor": lambda: ones(2).maximum([1, 2]),
    "backward begins with a tensor, and got a float": lambda: leaf(1).sum().backward(1.0),
    "backward begins with a tensor, and got a ndarray": lambda: leaf(1).sum().backward(np.ones(1)),
    "cat is for tensors and got a NoneType": lambda: cat([ones(2), None]),
    "stack is for tensors and got a int": lambda: stack([1, 2]),
    "repeat_interleave by 1.5": lambda: ones(2).repeat_interleave(1.5),
    "an array and a tensor do not mix": lambda: ones(2, 2) @ np.ones((2, 2)),
    "a gradient is a tensor or None, and this is a ndarray": lambda: setattr(leaf(1), "grad", np.ones(1)),
    "grad got 1 grad_outputs for 2 outputs": lambda: operations.grad([leaf(1), leaf(2)], leaf(1), [ones(1)]),
    "needs a static method forward": lambda: type("Empty", (operations.Function,), {}).apply(leaf(1)),
    "save_for_backward is for tensors, not a float": lambda: operations.Context().save_for_backward(None, 3.0),
}


@pytest.mark.parametrize("sentence", list(REFUSED))
def test_what_does_not_fit_is_named(sentence):
    with pytest.raises((ValueError, TypeError, IndexError, NotImplementedError)) as met:
        REFUSED[sentence]()
    assert sentence in str(met.value)


def test_every_public_function_has_an_operation_or_is_listed_without_gradient():
    kernels = [operations.argsort_along, operations.isnan, operations.isinf, operations.isfinite]
    assert autodiff.NOT_DIFFERENTIABLE.issuperset(kernels)
    mine = [kind for kind in autodiff.OPERATIONS.values() if kind.__module__ == operations.__name__]
    assert len(mine) > 45
