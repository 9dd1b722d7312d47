"""Chapter 02: the right values, wrong answers, and other right ones. A mistake's docstring is what learners read."""

from __future__ import annotations

from contextlib import ContextDecorator, contextmanager

import numpy as np

from gradwright.chapters.autodiff import (
    Multiply,
    Switch,
    count_arrivals,
    matmul_gradients,
    numerical_gradient,
    plain,
    project,
    unbroadcast,
)


class autodiff_numerical:
    def oracle(arrays, torch):
        """Central differences by their formula; where the step is left out, the derivative itself."""
        x, weights = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["weights"])
        step = float(arrays["step"])

        def f(x):
            return (weights * torch.sin(x)).sum() + 0.5 * x.sum() ** 2

        if not step:
            leaf = x.clone().requires_grad_()
            f(leaf).backward()
            return {"gradient": leaf.grad}
        flat, gradient = x.reshape(-1), torch.zeros(x.numel(), dtype=torch.float64)
        for i in range(x.numel()):
            move = torch.zeros_like(flat)
            move[i] = step
            gradient[i] = (f((flat + move).reshape(x.shape)) - f((flat - move).reshape(x.shape))) / (2 * step)
        return {"gradient": gradient.reshape(x.shape)}

    class mistakes:
        def forward_difference(f, x, step=6e-6):
            """The step went to one side only. Go to both sides: the error then shrinks with the square of the step."""
            here = f(x)
            gradient = np.empty_like(x)
            for place in np.ndindex(x.shape):
                moved = x.copy()
                moved[place] += step
                gradient[place] = (f(moved) - here) / step
            return gradient

        def divided_by_one_step(f, x, step=6e-6):
            """The difference was divided by one step, but the two points lie two steps apart."""
            return 2 * numerical_gradient(f, x, step)

        def multiplied_by_the_step(f, x, step=6e-6):
            """The difference was multiplied by the step: Python reads `a / 2 * step` from left to right. Put what is
            below the line in brackets."""
            return step**2 * numerical_gradient(f, x, step)

        def not_divided(f, x, step=6e-6):
            """The difference of the two values was not divided by the distance between the two points."""
            return 2 * step * numerical_gradient(f, x, step)

        def sides_exchanged(f, x, step=6e-6):
            """The sign is wrong: subtract the value below from the value above."""
            return -numerical_gradient(f, x, step)

        def all_moved_at_once(f, x, step=6e-6):
            """All elements moved together, so every place holds the same number: move one, and let the others stay."""
            return np.full_like(x, (f(x + step) - f(x - step)) / (2 * step))

        def never_moved_back(f, x, step=6e-6):
            """An element stayed moved while the next ones were tried: begin each time with x as it was."""
            above, below = x.copy(), x.copy()
            gradient = np.empty_like(x)
            for place in np.ndindex(x.shape):
                above[place] += step
                below[place] -= step
                gradient[place] = (f(above) - f(below)) / (2 * step)
            return gradient

        def own_step(f, x, step=6e-6):
            """The step that was asked for was not used: take it from the argument."""
            return numerical_gradient(f, x, 6e-6)

        def summed(f, x, step=6e-6):
            """The differences were added up to one number, and every element should get its own."""
            return np.array(numerical_gradient(f, x, step).sum())

    class alternatives:
        def flat(f, x, step=6e-6):
            moves = step * np.eye(x.size).reshape(x.size, *x.shape)
            return np.array([f(x + move) - f(x - move) for move in moves]).reshape(x.shape) / (2 * step)

        def one_copy(f, x, step=6e-6):
            x = x.copy()
            gradient = np.zeros(x.shape)
            for place, value in np.ndenumerate(x.copy()):
                x[place] = value + step
                above = f(x)
                x[place] = value - step
                gradient[place] = (above - f(x)) / (2 * step)
                x[place] = value
            return gradient


def oracle_pair(arrays, torch, product):
    a, b = (torch.from_numpy(arrays[name]).double().requires_grad_() for name in "ab")
    whole = product(a, b)
    whole.backward(torch.from_numpy(arrays["grad"]).double())
    return whole, {"a": a.grad, "b": b.grad}


def wanted_only(arrays, grads):
    """The gradients that are wanted, and None for the others."""
    return {
        f"gradient of {name}" if arrays[f"{name} is wanted"] else f"gradient of {name} is None": (
            grad if arrays[f"{name} is wanted"] else True
        )
        for name, grad in grads.items()
    }


class autodiff_multiply:
    def oracle(arrays, torch):
        """The gradients in the shape of the product: both inputs are expanded to it before they are multiplied."""
        shape = arrays["grad"].shape
        full = dict(arrays, **{name: np.broadcast_to(arrays[name], shape).copy() for name in "ab"})
        product, grads = oracle_pair(full, torch, lambda a, b: a * b)
        kept = int(arrays["a is wanted"]) + int(arrays["b is wanted"])
        return {"product": product, "arrays kept": kept, **wanted_only(arrays, grads)}

    class mistakes:
        class not_crossed(Multiply):
            """Each input got its own value times what arrived. The gradient of a is the *other* one, b, times it."""

            def forward(self, a, b):
                self.save(a if a.requires_grad else None, b if b.requires_grad else None)
                return plain.multiply(a, b)

            def backward(self, grad):
                a, b = self.saved
                return None if a is None else grad * a, None if b is None else grad * b

        class passed_through(Multiply):
            """The gradient was passed on as it came. That is what add does; multiply crosses its inputs."""

            def backward(self, grad):
                a, b = self.saved
                return None if b is None else grad, None if a is None else grad

        class arriving_gradient_forgotten(Multiply):
            """The other input came back alone: multiply it by the gradient that arrives from above."""

            def backward(self, grad):
                a, b = self.saved
                zero = 0 * grad
                return None if b is None else b + zero, None if a is None else a + zero

        class both_kept(Multiply):
            """Both inputs were kept, though one gradient is not wanted. Keep only what will be read: the rest of the
            memory could hold a larger batch."""

            def forward(self, a, b):
                self.save(a, b)
                self.wanted = a.requires_grad, b.requires_grad
                return plain.multiply(a, b)

            def backward(self, grad):
                (a, b), (a_wanted, b_wanted) = self.saved, self.wanted
                return grad * b if a_wanted else None, grad * a if b_wanted else None

        class unwanted_too(Multiply):
            """A gradient was computed that nobody wants, and an input kept for it: give None in its place."""

            def forward(self, a, b):
                self.save(a, b)
                return plain.multiply(a, b)

            def backward(self, grad):
                a, b = self.saved
                return grad * b, grad * a

        class kept_for_the_wrong_one(Multiply):
            """Each input was kept where its *own* gradient is wanted. It is the other one's that needs it: b is read
            for the gradient of a."""

            def forward(self, a, b):
                self.save(a if a.requires_grad else None, b if b.requires_grad else None)
                return plain.multiply(a, b)

        class kept_elsewhere(Multiply):
            """The inputs were kept in attributes, where nobody counts or guards them: hand them to `self.save`, and
            take them from `self.saved`."""

            def forward(self, a, b):
                self.wanted = a.requires_grad, b.requires_grad
                self.a, self.b = a.array, b.array
                return plain.multiply(a, b)

            def backward(self, grad):
                return grad * self.b if self.wanted[0] else None, grad * self.a if self.wanted[1] else None

        class divided(Multiply):
            """The gradient was divided by the other input, and it has to be multiplied by it."""

            def backward(self, grad):
                a, b = self.saved
                return None if b is None else grad / b, None if a is None else grad / a

        class exchanged(Multiply):
            """The two gradients are right and in the wrong order: that of a comes first."""

            def backward(self, grad):
                a, b = self.saved
                return None if a is None else grad * a, None if b is None else grad * b

        class summed_to_a_number(Multiply):
            """The gradient was summed to one number. Here it keeps the shape of the output."""

            def backward(self, grad):
                return tuple(g if g is None else g.sum() for g in super().backward(grad))

    class alternatives:
        class by_name(Multiply):
            def forward(self, a, b):
                kept_a = a if b.requires_grad else None
                kept_b = b if a.requires_grad else None
                self.save(kept_a, kept_b)
                return plain.multiply(a, b)

            def backward(self, grad):
                a, b = self.saved
                grad_a = grad_b = None
                if b is not None:
                    grad_a = b * grad
                if a is not None:
                    grad_b = a * grad
                return grad_a, grad_b


class autodiff_unbroadcast:
    def oracle(arrays, torch):
        grad = torch.from_numpy(arrays["grad"]).double()
        return {"gradient of the input": grad.sum_to_size(tuple(arrays["shape"].tolist()))}

    class mistakes:
        def mean_instead_of_sum(grad, shape):
            """The gradients of the copies were averaged. An element that was read n times gets the sum of all n."""
            out = unbroadcast(grad, shape)
            return out * out.dtype.type(max(out.size, 1) / max(grad.size, 1))

        def first_copy_only(grad, shape):
            """Only the gradient of the first copy was taken. Every place that has read the element counts."""
            grad = grad[(slice(0, 1),) * (grad.ndim - len(shape))].reshape(grad.shape[grad.ndim - len(shape) :])
            return grad[tuple(slice(0, 1) if n == 1 else slice(None) for n in shape)]

        def stretched_axes_only(grad, shape):
            """Axes that were added in front are still there: sum over them, and let them go."""
            axes = tuple(axis - len(shape) for axis, n in enumerate(shape) if n == 1)
            return grad.sum(axis=axes, keepdims=True)

        def added_axes_only(grad, shape):
            """Axes of size 1 that were stretched have kept their large size: sum over them too, and keep them."""
            return grad.sum(axis=tuple(range(grad.ndim - len(shape))))

        def stretched_axes_dropped(grad, shape):
            """A stretched axis was summed and is gone. It was there before, with size 1, and has to be there again."""
            grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
            return grad.sum(axis=tuple(axis for axis, n in enumerate(shape) if n == 1))

        def lined_up_on_the_left(grad, shape):
            """The shapes were lined up on the left. Broadcasting lines them up on the right, so the added axes are the
            first ones."""
            padded = tuple(shape) + (1,) * (grad.ndim - len(shape))
            axes = tuple(axis for axis, n in enumerate(padded) if n == 1)
            return grad.sum(axis=axes, keepdims=True).reshape(shape)

        def summed_over_everything(grad, shape):
            """Everything was summed to one number: sum only over the axes along which an element was repeated."""
            return np.full(shape, grad.sum(), grad.dtype)

        def only_reshaped(grad, shape):
            """The gradient was cut to the new shape without summing, so that the other copies' shares are lost."""
            return np.resize(grad, shape)

    class alternatives:
        def axis_by_axis(grad, shape):
            while grad.ndim > len(shape):
                grad = grad.sum(axis=0)
            for axis, size in enumerate(shape):
                if size == 1:
                    grad = grad.sum(axis=axis, keepdims=True)
            return grad

        def padded_shape(grad, shape):
            padded = (1,) * (grad.ndim - len(shape)) + tuple(shape)
            return grad.sum(axis=tuple(i for i, n in enumerate(padded) if n == 1), keepdims=True).reshape(shape)

        def einsum(grad, shape):
            axes = list(range(grad.ndim))
            kept = [axis for axis, n in zip(axes[grad.ndim - len(shape) :], shape, strict=True) if n != 1]
            return np.einsum(grad, axes, kept).reshape(shape)


class autodiff_matmul:
    def oracle(arrays, torch):
        _, grads = oracle_pair(arrays, torch, torch.matmul)
        return wanted_only(arrays, grads)

    class mistakes:
        def factors_exchanged(grad, a, b):
            """The right factors in the wrong order. Matrix products do not commute: a came first, so the gradient of b
            has a in front, and the gradient of a has b at the end."""
            return None if b is None else b.mT @ grad, None if a is None else grad @ a.mT

        def not_transposed(grad, a, b):
            """Nothing was transposed. Compare the shapes: the inner sizes only meet when the other factor is turned."""
            return None if b is None else grad @ b, None if a is None else a @ grad

        def gradient_transposed(grad, a, b):
            """The arriving gradient was transposed too. Only the other factor is."""
            return (
                None if b is None else grad.mT @ b.mT,
                None if a is None else a.mT @ grad.mT,
            )

        def result_transposed(grad, a, b):
            """Both gradients are transposed: each has the shape of its input, (n, k) and (k, m)."""
            return tuple(None if g is None else g.mT for g in matmul_gradients(grad, a, b))

        def stack_turned_inside_out(grad, a, b):
            """`.T` turns round *all* axes of a stack. `.mT` exchanges the last two."""
            return None if b is None else grad @ b.T, None if a is None else a.T @ grad

        def element_by_element(grad, a, b):
            """The gradients were multiplied element by element, as for `*`. The gradient of a matrix product is made of
            matrix products."""
            return (
                None if b is None else grad * np.add.reduce(b, axis=-2, keepdims=True),
                None if a is None else np.add.reduce(a, axis=-1, keepdims=True) * grad,
            )

        def exchanged(grad, a, b):
            """The two gradients are right and in the wrong order: that of a comes first."""
            return matmul_gradients(grad, a, b)[::-1]

        def stack_added_up(grad, a, b):
            """The products of a stack were added up. Each matrix of the stack has a gradient of its own."""
            found = matmul_gradients(grad, a, b)
            return tuple(None if g is None else g.sum(axis=tuple(range(g.ndim - 2))) for g in found)

    class alternatives:
        def einsum(grad, a, b):
            return (
                None if b is None else np.einsum("...nm,...km->...nk", grad, b),
                None if a is None else np.einsum("...nk,...nm->...km", a, grad),
            )

        def transposed_product(grad, a, b):
            grad_a = grad_b = None
            if b is not None:
                grad_a = (b @ grad.swapaxes(-1, -2)).swapaxes(-1, -2)
            if a is not None:
                grad_b = np.swapaxes(a, -1, -2) @ grad
            return grad_a, grad_b


SHOWN = 12
"""How many nodes the probes of graphs compare, from the root on."""


def routes_of(arrays):
    """For each node of a case's graph its edges, as pairs of a target, or None, and a weight."""
    size = int(arrays["edges"].max())
    routes = [[] for _ in range(int(arrays["copies"]) * size + 1)]
    for copy in range(int(arrays["copies"])):
        for (i, j), weight in zip(arrays["edges"].tolist(), arrays["weights"].tolist(), strict=True):
            routes[copy * size + i].append((None if j < 0 else copy * size + j, weight))
    return routes


def leaf_gradients(arrays, torch):
    """The gradients of the leaves, from the same graph built forwards in PyTorch."""
    routes, numbers = routes_of(arrays), set(arrays.get("numbers", np.array([])).tolist())
    starts = [torch.zeros(() if i in numbers else arrays["grad"].shape).double() for i in range(len(routes))]
    values = [None if edges else start.requires_grad_() for edges, start in zip(routes, starts, strict=True)]
    leaves = [value for value in values if value is not None]
    for node in reversed(range(len(routes))):
        if routes[node]:
            terms = [w * values[target] for target, w in routes[node] if target is not None]
            terms = [term.sum() if node in numbers else term for term in terms]
            values[node] = sum(terms, starts[node])
    values[0].backward(torch.from_numpy(arrays["grad"]))
    found = [(torch.zeros_like(leaf) if leaf.grad is None else leaf.grad).numpy() for leaf in leaves]
    return np.concatenate([g.ravel() for g in found]) if numbers else np.array(found)


def arrivals_by_hand(arrays):
    """How many edges lead to each node from nodes that the root reaches; -1 where there is none."""
    routes = routes_of(arrays)
    counts = [0] + [-1] * (len(routes) - 1)
    for node, edges in enumerate(routes):
        for target, _ in edges if counts[node] >= 0 else []:
            if target is not None:
                counts[target] = max(counts[target], 0) + 1
    return counts


def paths_by_hand(arrays):
    """Along how many paths the root reaches each node."""
    routes = routes_of(arrays)
    paths = [1] + [0] * (len(routes) - 1)
    for node, edges in enumerate(routes):
        for target, _ in edges:
            if target is not None:
                paths[target] += paths[node]
    return np.array(paths[:SHOWN])


class autodiff_recursion:
    def oracle(arrays, torch):
        return {"gradients of the leaves": leaf_gradients(arrays, torch), "visits": paths_by_hand(arrays)}

    class mistakes:
        def own_gradient_passed_on(node, grad, visit):
            """The node's own gradient went on to its targets. Each target gets the gradient that stands beside it in
            its pair."""
            for target, _ in visit(node, grad):
                autodiff_recursion.mistakes.own_gradient_passed_on(target, grad, visit)

        def first_target_only(node, grad, visit):
            """Only the first target was followed: a `return` inside the loop ends it after one round."""
            for target, g in visit(node, grad):
                return autodiff_recursion.mistakes.first_target_only(target, g, visit)

        def one_step_only(node, grad, visit):
            """The targets were visited and theirs were not: call the function itself on each target."""
            for target, g in visit(node, grad):
                visit(target, g)

        def each_node_once(node, grad, visit, seen=None):
            """A node that had been seen was skipped, and the gradient of the second path with it."""
            seen = set() if seen is None else seen
            seen.add(node)
            for target, g in visit(node, grad):
                if target not in seen:
                    autodiff_recursion.mistakes.each_node_once(target, g, visit, seen)

        def total_passed_on(node, grad, visit, totals=None):
            """Each time more arrived, a node passed on all it had so far, and not only what was new: gradients that had
            gone on already went on again."""
            totals = {} if totals is None else totals
            totals[node] = totals.get(node, 0) + grad
            for target, g in visit(node, totals[node]):
                autodiff_recursion.mistakes.total_passed_on(target, g, visit, totals)

        def visited_twice(node, grad, visit):
            """visit was called before the recursion and in it, so that every node but the first was visited twice."""
            for target, g in visit(node, grad):
                visit(target, g)
                autodiff_recursion.mistakes.visited_twice(target, g, visit)

    class alternatives:
        def stack(node, grad, visit):
            waiting = [(node, grad)]
            while waiting:
                waiting.extend(visit(*waiting.pop()))

        def backwards(node, grad, visit):
            for pair in reversed(list(visit(node, grad))):
                autodiff_recursion.alternatives.backwards(*pair, visit)


ARRIVALS = "arrivals (-1 where a node is missing)"


class autodiff_arrivals:
    def oracle(arrays, torch):
        counts = arrivals_by_hand(arrays)
        return {
            ARRIVALS: np.array(counts[:SHOWN]),
            "arrivals at the last node": counts[-1],
            "nodes counted": sum(count >= 0 for count in counts),
        }

    class mistakes:
        def paths_counted(root):
            """These are numbers of paths. A node passes its gradient on once, however many have arrived: follow its
            targets only when you meet it for the first time."""
            arrivals, waiting = {root: 0}, [root]
            while waiting:
                for target in waiting.pop().targets:
                    if target is not None:
                        arrivals[target] = arrivals.get(target, 0) + 1
                        waiting.append(target)
            return arrivals

        def once_each(root):
            """Every node counts one arrival, also those that two others send to: count again each time you meet it."""
            return {node: min(n, 1) for node, n in count_arrivals(root).items()}

        def recursive(root):
            """The counting calls itself for every step down, and Python stops that at a depth of about a thousand: keep
            the nodes that are still to be looked at in a list of your own."""
            arrivals = {root: 0}

            def look(node):
                for target in node.targets:
                    if target is not None:
                        arrivals[target] = arrivals.get(target, 0) + 1
                        if arrivals[target] == 1:
                            look(target)

            look(root)
            return arrivals

        def root_counts_one(root):
            """The root got one arrival from nowhere. What it begins with comes from nobody in the graph."""
            return count_arrivals(root) | {root: 1}

        def root_missing(root):
            """The root is missing: it belongs to the nodes, with 0 arrivals."""
            counts = count_arrivals(root)
            del counts[root]
            return counts

        def counted_from_zero(root):
            """A node counted 0 when it was met for the first time, and that was an arrival already."""
            return {node: max(n - 1, 0) for node, n in count_arrivals(root).items()}

        def nothing_is_a_node(root):
            """None was counted as a node. It stands for an input that wants no gradient: pass over it."""
            arrivals, unseen = {root: 0}, [root]
            while unseen:
                node = unseen.pop()
                for target in node.targets if node is not None else ():
                    if target not in arrivals:
                        unseen.append(target)
                    arrivals[target] = arrivals.get(target, 0) + 1
            return arrivals

        def departures(root):
            """The gradients that a node sends were counted, and not those that it gets."""
            return {node: len([t for t in node.targets if t is not None]) for node in count_arrivals(root)}

    class alternatives:
        def two_passes(root):
            seen, order = {root}, [root]
            for node in order:
                fresh = [target for target in dict.fromkeys(node.targets) if target is not None and target not in seen]
                seen.update(fresh)
                order.extend(fresh)
            counts = dict.fromkeys(order, 0)
            for node in order:
                for target in node.targets:
                    if target is not None:
                        counts[target] += 1
            return counts


class autodiff_walk:
    def oracle(arrays, torch):
        once = np.array([min(count + 1, 1) for count in arrivals_by_hand(arrays)[:SHOWN]])
        return {"gradients of the leaves": leaf_gradients(arrays, torch), "visits": once}

    class mistakes:
        def did_not_wait(root, grad, visit):
            """Nodes were visited as soon as anything had arrived, and what came later was lost. Wait until as many
            gradients have arrived as count_arrivals says."""
            arrived, ready, done = {root: grad}, [root], set()
            while ready:
                node = ready.pop(0)
                if node in done:
                    continue
                done.add(node)
                for target, g in visit(node, arrived[node]):
                    arrived[target] = arrived[target] + g if target in arrived else g
                    ready.append(target)

        def passed_on_each_time(root, grad, visit):
            """A node was visited each time something arrived, with all that it had so far, so that the same gradient
            went on more than once. Visit it once, with the sum."""
            arrived, ready = {root: grad}, [root]
            while ready:
                node = ready.pop(0)
                for target, g in visit(node, arrived[node]):
                    arrived[target] = arrived[target] + g if target in arrived else g
                    ready.append(target)

        def along_every_path(root, grad, visit):
            """Every path was walked by itself: that is the recursion again, written as a loop, with as many visits. Add
            up what arrives at a node, and visit it once."""
            ready = [(root, grad)]
            while ready:
                ready.extend(visit(*ready.pop()))

        def last_arrival_only(root, grad, visit):
            """A second gradient replaced the first one. Add them up."""
            waiting, arrived, ready = count_arrivals(root), {root: grad}, [root]
            while ready:
                node = ready.pop()
                for target, g in visit(node, arrived.pop(node)):
                    arrived[target] = g
                    waiting[target] -= 1
                    if not waiting[target]:
                        ready.append(target)

        def first_arrival_only(root, grad, visit):
            """Only the first gradient that arrived was kept. Add up the later ones."""
            waiting, arrived, ready = count_arrivals(root), {root: grad}, [root]
            while ready:
                node = ready.pop()
                for target, g in visit(node, arrived.pop(node)):
                    arrived.setdefault(target, g)
                    waiting[target] -= 1
                    if not waiting[target]:
                        ready.append(target)

        def added_in_place(root, grad, visit):
            """A sum was written into an array that another node had been given as well (`+=`). Make a new array for the
            sum: an addition hands one and the same array to both of its inputs."""
            waiting, arrived, ready = count_arrivals(root), {root: grad}, [root]
            while ready:
                node = ready.pop()
                for target, g in visit(node, arrived.pop(node)):
                    if target in arrived:
                        arrived[target] += g
                    else:
                        arrived[target] = g
                    waiting[target] -= 1
                    if not waiting[target]:
                        ready.append(target)

        def order_found_by_recursion(root, grad, visit):
            """The order was found by a function that calls itself, which Python stops at a depth of about a thousand.
            Counting arrivals, and a list of ready nodes, need no recursion."""
            order, seen = [], set()

            def arrange(node):
                seen.add(node)
                for target in node.targets:
                    if target is not None and target not in seen:
                        arrange(target)
                order.append(node)

            arrange(root)
            arrived = {root: grad}
            for node in reversed(order):
                for target, g in visit(node, arrived[node]):
                    arrived[target] = arrived[target] + g if target in arrived else g

        def zeros_like_the_root(root, grad, visit):
            """The sums began with zeros in the shape of the root's gradient, and a node whose gradient is smaller gets
            too large a one. Begin with the first gradient that arrives at a node."""
            waiting, arrived, ready = count_arrivals(root), {root: grad}, [root]
            while ready:
                node = ready.pop()
                for target, g in visit(node, arrived.pop(node)):
                    arrived[target] = arrived.get(target, np.zeros_like(grad)) + g
                    waiting[target] -= 1
                    if not waiting[target]:
                        ready.append(target)

        def one_arrival_short(root, grad, visit):
            """A node was visited one arrival too early, and again at the last one: compare with 0 after you have
            counted the arrival."""
            waiting, arrived, ready = count_arrivals(root), {root: grad}, [root]
            while ready:
                node = ready.pop()
                for target, g in visit(node, arrived[node]):
                    arrived[target] = arrived[target] + g if target in arrived else g
                    waiting[target] -= 1
                    if waiting[target] <= 1:
                        ready.append(target)

    class alternatives:
        def queue(root, grad, visit):
            waiting = count_arrivals(root)
            sums = {node: [] for node in waiting}
            sums[root] = [grad]
            ready = [root]
            for node in ready:
                for target, g in visit(node, sum(sums[node][1:], sums[node][0])):
                    sums[target].append(g)
                    if len(sums[target]) == waiting[target]:
                        ready.append(target)

        def order_first(root, grad, visit):
            left, order = count_arrivals(root), [root]
            for node in order:
                for target in node.targets:
                    if target is not None:
                        left[target] -= 1
                        if left[target] == 0:
                            order.append(target)
            arrived = {root: grad}
            for node in order:
                for target, g in visit(node, arrived.pop(node)):
                    arrived[target] = g if target not in arrived else np.add(arrived[target], g)


class autodiff_parts:
    def oracle(arrays, torch):
        examples, w = torch.from_numpy(arrays["examples"]), torch.from_numpy(arrays["w"]).requires_grad_()
        loss = ((examples @ w) ** 2).mean()
        loss.backward()
        return {
            "gradient": w.grad,
            "mean loss": loss.detach(),
            "calls of backward": len(arrays["lengths"]),
            "losses alive at once": 1,
        }

    class mistakes:
        def mean_of_means(loss_of, parts):
            """Every part counted the same, however short. An example in a short part then counts more than one in a
            long part: weigh each loss by its number of examples."""
            mean = 0.0
            for part in parts:
                loss = loss_of(part) * (1 / len(parts))
                loss.backward()
                mean += loss.item()
            return mean

        def not_weighed(loss_of, parts):
            """The means of the parts were added up as they are, so the gradient is as many times too large as there are
            parts: weigh each by its share of all examples."""
            mean = 0.0
            for part in parts:
                loss = loss_of(part)
                loss.backward()
                mean += loss.item()
            return mean

        def only_the_value_weighed(loss_of, parts):
            """The number that is returned was weighed, and the loss that backward began at was not: weigh first, then
            call backward on the weighed loss."""
            total, mean = sum(map(len, parts)), 0.0
            for part in parts:
                loss = loss_of(part)
                loss.backward()
                mean += loss.item() * len(part) / total
            return mean

        def only_the_gradient_weighed(loss_of, parts):
            """The gradient is right. The value that is returned is a mean of means: weigh that as well."""
            total, mean = sum(map(len, parts)), 0.0
            for part in parts:
                loss = loss_of(part)
                (loss * (len(part) / total)).backward()
                mean += loss.item() / len(parts)
            return mean

        def all_kept_until_the_end(loss_of, parts):
            """Backward came once, at the end, and until then every part's graph was in memory: call it on each part
            before the next one's loss is computed."""
            total = sum(map(len, parts))
            loss = sum(loss_of(part) * (len(part) / total) for part in parts)
            loss.backward()
            return loss.item()

        def one_batch_again(loss_of, parts):
            """The parts were joined to one batch, and all of it was in memory at once. Call loss_of and backward on
            each part by itself."""
            loss = loss_of(np.concatenate(parts))
            loss.backward()
            return loss.item()

        def multiplied_by_the_count(loss_of, parts):
            """Each loss was multiplied by its number of examples and never divided by the number of all: that is the
            sum over the examples, not their mean."""
            mean = 0.0
            for part in parts:
                loss = loss_of(part) * len(part)
                loss.backward()
                mean += loss.item()
            return mean

        def last_value_returned(loss_of, parts):
            """The loss of the last part was returned. The gradient holds all parts, and so should the number."""
            total = sum(map(len, parts))
            for part in parts:
                loss = loss_of(part) * (len(part) / total)
                loss.backward()
            return loss.item()

        def tensor_returned(loss_of, parts):
            """A tensor came back, which keeps the graphs of all parts alive: add up Python numbers, with item()."""
            total, mean = sum(map(len, parts)), 0.0
            for part in parts:
                loss = loss_of(part) * (len(part) / total)
                loss.backward()
                mean = loss + mean
            return mean

    class alternatives:
        def count_first(loss_of, parts):
            counts = np.array([len(part) for part in parts])
            values = []
            for part, share in zip(parts, counts / counts.sum(), strict=True):
                loss = loss_of(part)
                (share.item() * loss).backward()
                values.append(share.item() * float(loss))
            return sum(values)


def log_of(state, value, scenario):
    """What `enabled` is, step by step, with a stack of values: for the oracle, by hand."""
    before, other = state, not value
    return {
        "only_made": [before],
        "block": [value, before],
        "block_that_raises": [value, before, True],
        "two_objects": [other, value, before],
        "one_object_twice": [value, other, before],
        "one_object_again": [value, value, not before],
        "decorated": [before, value, value, value, value, value, before],
        "changed_before_the_block": [value, not before],
    }[scenario]


class autodiff_switch:
    def oracle(arrays, torch):
        return {
            "what enabled was, step by step": np.array(
                log_of(bool(arrays["enabled"]), bool(arrays["value"]), str(arrays["scenario"]))
            )
        }

    class mistakes:
        class always_on_afterwards(Switch):
            """The end of the block switched to True, whatever was before. Inside another block that is wrong: remember
            what you found, and put that back."""

            def __exit__(self, *exception):
                self.state.enabled = True

        class opposite_afterwards(Switch):
            """The end of the block set the opposite of its value. It may have been the same before: remember what you
            found, and put that back."""

            def __exit__(self, *exception):
                self.state.enabled = not self.value

        class never_undone(Switch):
            """Nothing was put back at the end of the block."""

            def __exit__(self, *exception):
                pass

        class put_back_only_without_error(Switch):
            """After an exception nothing was put back. `__exit__` is called then as well, and has to do the same."""

            def __exit__(self, kind=None, *rest):
                if kind is None:
                    super().__exit__(kind, *rest)

        class exception_swallowed(Switch):
            """The exception did not get out of the block: `__exit__` returned something true, and Python takes that as
            a sign that all is well. Return nothing."""

            def __exit__(self, *exception):
                super().__exit__(*exception)
                return True

        class one_memory(ContextDecorator):
            """Entered a second time before it was left, the object forgot what it had found the first time: let it
            remember a list, one entry for each time."""

            def __init__(self, state, value):
                self.state, self.value = state, value

            def __enter__(self):
                self.before, self.state.enabled = self.state.enabled, self.value

            def __exit__(self, *exception):
                self.state.enabled = self.before

        class looked_when_made(ContextDecorator):
            """What was there before was looked up when the object was made, and that may be long before the block
            begins. Look in `__enter__`."""

            def __init__(self, state, value):
                self.state, self.value, self.before = state, value, state.enabled

            def __enter__(self):
                self.state.enabled = self.value

            def __exit__(self, *exception):
                self.state.enabled = self.before

        class switched_when_made(Switch):
            """It switched when it was made. Nothing may happen before the block is entered."""

            def __init__(self, state, value):
                super().__init__(state, value)
                state.enabled = value

        class always_off(Switch):
            """Inside the block it is off, whatever value was asked for."""

            def __enter__(self):
                super().__enter__()
                self.state.enabled = False

    class alternatives:
        class generator(ContextDecorator):
            def __init__(self, state, value):
                self.state, self.value, self.open = state, value, []

            @contextmanager
            def block(self):
                before = self.state.enabled
                self.state.enabled = self.value
                try:
                    yield
                finally:
                    self.state.enabled = before

            def __enter__(self):
                self.open.append(self.block())
                return self.open[-1].__enter__()

            def __exit__(self, *exception):
                return self.open.pop().__exit__(*exception)


class autodiff_unpack:
    def oracle(arrays, torch):
        """By hand; PyTorch raises the same error where one of its tensors was changed in place."""
        if arrays["nothing was saved"]:
            return {"None for None": True}
        if arrays["version now"] != arrays["version then"]:
            return {"refused with RuntimeError": True}
        return {"the array, after the memory was doubled": 2 * arrays["array"]}

    class mistakes:
        def never_compared(kept):
            """An array that was changed in the meantime was handed out, and the gradient will be wrong without a word:
            compare the two versions."""
            return None if kept is None else kept[0]

        def compared_with_zero(kept):
            """A storage that was ever written to is refused. Writes *before* the value was saved do no harm: compare
            with the version that was noted then."""
            if kept is None:
                return None
            if kept[1].version != 0:
                raise RuntimeError("written to")
            return kept[0]

        def compared_by_identity(kept):
            """The versions were compared by `is`, which asks whether two numbers are one object: small ones are, large
            ones are not. Use != or ==."""
            if kept is None:
                return None
            if kept[1].version is not kept[2]:
                raise RuntimeError("written to")
            return kept[0]

        def copied(kept):
            """A copy was handed out. The array itself is safe once the versions agree, and copies cost memory."""
            return kept if kept is None else checked(kept).copy()

        def one_write_allowed(kept):
            """One write since then was let through. A single one is enough to spoil the gradient."""
            if kept is None:
                return None
            if kept[1].version > kept[2] + 1:
                raise RuntimeError("written to")
            return kept[0]

        def storage_handed_out(kept):
            """The whole storage came back. The array is its first neighbour in `kept`, in the right shape."""
            return kept if kept is None else checked(kept) is not None and kept[1].data

        def none_refused(kept):
            """None stands for an input whose value was not needed: hand it back."""
            return checked(kept)

        def empty_for_none(kept):
            """An empty array came back where nothing was saved, which looks like a value: give None."""
            return np.empty(0) if kept is None else checked(kept)

    class alternatives:
        def by_parts(kept):
            if kept is not None:
                array, storage, version = kept
                if version == storage.version:
                    return array
                raise RuntimeError(f"version {storage.version}, saved at {version}")


def checked(kept):
    array, storage, version = kept
    if storage.version != version:
        raise RuntimeError(f"version {storage.version}, saved at {version}")
    return array


class autodiff_hooks:
    def oracle(arrays, torch):
        """PyTorch's own hooks, on a tensor whose gradient is `grad`."""
        seen = []

        def hook_for(factor):
            def hook(grad):
                seen.append(grad.clone().numpy())
                return None if np.isnan(factor) else grad * float(factor)

            return hook

        grad = torch.from_numpy(arrays["grad"])
        leaf = torch.zeros(grad.shape, dtype=torch.float64, requires_grad=True)
        for factor in arrays["factors"]:
            leaf.register_hook(hook_for(factor))
        leaf.backward(grad)
        return {"gradient that goes on": leaf.grad, "what each hook saw": np.array(seen)}

    class mistakes:
        def none_taken_over(hooks, grad):
            """A hook that only watched returned None, and None took the gradient's place. Then keep the gradient."""
            for hook in hooks:
                grad = hook(grad)
            return grad

        def edits_ignored(hooks, grad):
            """What the hooks returned was thrown away. A gradient that one returns goes on in the old one's place."""
            for hook in hooks:
                hook(grad)
            return grad

        def all_see_the_first(hooks, grad):
            """Every hook saw the gradient as it was at first. One that comes after an edit sees the edited one."""
            after = grad
            for hook in hooks:
                edited = hook(grad)
                after = after if edited is None else edited
            return after

        def last_registered_first(hooks, grad):
            """The hooks ran from the last to the first. They run in the order in which they were registered."""
            for hook in reversed(hooks):
                edited = hook(grad)
                grad = grad if edited is None else edited
            return grad

        def stops_at_the_first_edit(hooks, grad):
            """After one hook had edited the gradient, the others were not asked any more."""
            for hook in hooks:
                edited = hook(grad)
                if edited is not None:
                    return edited
            return grad

        def asked_for_truth(hooks, grad):
            """`edited or grad` asks whether the edited gradient is true, and a gradient of 0 is not (one of several
            elements has no truth at all). Ask whether it is None."""
            for hook in hooks:
                grad = hook(grad) or grad
            return grad

        def edits_added(hooks, grad):
            """What a hook returned was added to the gradient. It takes the gradient's place."""
            for hook in hooks:
                edited = hook(grad)
                grad = grad if edited is None else grad + edited
            return grad

        def asked_twice(hooks, grad):
            """Each hook was called twice, once to see whether it returns something and once for what: keep what the
            first call returned."""
            for hook in hooks:
                if hook(grad) is not None:
                    grad = hook(grad)
            return grad

    class alternatives:
        def conditional(hooks, grad):
            for hook in hooks:
                edited = hook(grad)
                grad = grad if edited is None else edited
            return grad

        def recursive(hooks, grad):
            if not hooks:
                return grad
            edited = hooks[0](grad)
            return autodiff_hooks.alternatives.recursive(hooks[1:], grad if edited is None else edited)


class autodiff_projection:
    def oracle(arrays, torch):
        if arrays["x"].dtype.kind != "f":
            return {"refused with TypeError": True}
        x, matrix, u, v = (torch.from_numpy(arrays[name]).double() for name in ("x", "matrix", "u", "v"))
        step = float(arrays["step"])

        def f(x):
            return torch.sin(x @ matrix) + 0.1 * (x**2).sum()

        leaf = x.clone().requires_grad_()
        f(leaf).backward(u)
        exact = (leaf.grad * v).sum()
        numerical = (u * (f(x + step * v) - f(x - step * v))).sum() / (2 * step) if step else exact
        return {"numerical": numerical.item(), "with vjp": float(arrays["claim"]) * exact.item()}

    class mistakes:
        def forward_difference(f, vjp, x, u, v, step=6e-6):
            """The step went to one side only. Go to both sides: the error then shrinks with the square of the step."""
            _, analytic = project(f, vjp, x, u, v, step)
            return float((u * (f(x + step * v) - f(x)) / step).sum()), analytic

        def divided_by_one_step(f, vjp, x, u, v, step=6e-6):
            """The difference was divided by one step, but the two points lie two steps apart."""
            numerical, analytic = project(f, vjp, x, u, v, step)
            return 2 * numerical, analytic

        def believed(f, vjp, x, u, v, step=6e-6):
            """Both numbers come from vjp, so they always agree. The first has to come from f alone."""
            _, analytic = project(f, vjp, x, u, v, step)
            return analytic, analytic

        def outputs_added_up(f, vjp, x, u, v, step=6e-6):
            """The outputs were added up and u was not used in the numerical number: multiply by u first. A wrong
            gradient of one output could hide in a sum."""
            if x.dtype.kind != "f":
                raise TypeError("floats")
            difference = (f(x + step * v) - f(x - step * v)) / (2 * step)
            return float(difference.sum()), float((vjp(x, u) * v).sum())

        def all_inputs_moved_alike(f, vjp, x, u, v, step=6e-6):
            """Every input moved by the same step, and not along v."""
            _, analytic = project(f, vjp, x, u, v, step)
            return float((u * (f(x + step) - f(x - step))).sum() / (2 * step)), analytic

        def gradient_added_up(f, vjp, x, u, v, step=6e-6):
            """The gradient from vjp was added up and not projected: multiply it by v first."""
            numerical, _ = project(f, vjp, x, u, v, step)
            return numerical, float(vjp(x, u).sum())

        def whole_numbers_accepted(f, vjp, x, u, v, step=6e-6):
            """Whole numbers were accepted. Nothing lies between them that a small step could reach: raise TypeError."""
            return project(f, vjp, x.astype(np.float64), u, v, step)

        def matrix_products(f, vjp, x, u, v, step=6e-6):
            """The products were taken with dot, which is a matrix product where there are two axes. Multiply element by
            element, and add everything up."""
            if x.dtype.kind != "f":
                raise TypeError("floats")
            difference = (f(x + step * v) - f(x - step * v)) / (2 * step)
            return np.dot(u, difference.T), np.dot(vjp(x, u), v.T)

        def float32_refused(f, vjp, x, u, v, step=6e-6):
            """float32 was refused. It is coarse, but it can move: ask what kind of numbers x holds, and not how wide
            they are."""
            if x.dtype != np.float64:
                raise TypeError("float64")
            return project(f, vjp, x, u, v, step)

        def exchanged(f, vjp, x, u, v, step=6e-6):
            """The two numbers are right and in the wrong order: the numerical one comes first."""
            return project(f, vjp, x, u, v, step)[::-1]

        def direction_made_a_unit(f, vjp, x, u, v, step=6e-6):
            """v was shortened to length 1 on one side only. Use it as it is on both."""
            numerical, analytic = project(f, vjp, x, u, v / np.linalg.norm(v), step)
            return numerical, analytic * float(np.linalg.norm(v))

    class alternatives:
        def dot_products(f, vjp, x, u, v, step=6e-6):
            if not np.issubdtype(x.dtype, np.floating):
                raise TypeError(f"whole numbers: {x.dtype}")
            above, below = np.vdot(u, f(x + v * step)), np.vdot(u, f(x - v * step))
            return float(above - below) / 2 / step, float(np.vdot(v, vjp(x, u)))
