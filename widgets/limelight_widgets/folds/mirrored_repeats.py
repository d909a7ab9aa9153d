"""Repeats of the backward pass that the forward pass has: the gradients of equal layers are one, too.

These differ where the layers do not: the last round of a loop has no later one whose gradient it adds to its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from limelight_widgets.folds.group_tree import ROOT, Child, Group, GroupTree

Repeated = Callable[[int, list[list[Child]]], Child]
"""Makes a repeat in a container around rounds of its children."""


def mirror_repeats(tree: GroupTree, repeated: Repeated) -> None:
    """Makes of the gradients of each repeat of modules in the forward pass a repeat of their own."""
    backward = {group.path: index for index, group in enumerate(tree.groups) if group.lane == "backward" and group.path}
    _dissolve_those_of_unlike_layers(tree)
    for group in list(tree.groups):
        if group.repeat is None or group.lane != "forward" or not group.repeat.members:
            continue
        around = tree.groups[group.parent].path if group.parent != ROOT else ""
        container = backward.get(around, ROOT) if around else ROOT
        if container == ROOT and group.parent != ROOT:
            continue
        children = _without_repeats(tree, group, tree.children_of(container))
        found = _rounds(tree, group, children)
        if found is not None:
            start, stop, rounds = found
            ahead, behind = children[:start], children[stop:]
            tree.move([*ahead, *behind], container)  # what was in a repeat that is none any more
            tree.set_children(container, [*ahead, repeated(container, rounds), *behind])


def _dissolve_those_of_unlike_layers(tree: GroupTree) -> None:
    """Where not all layers of a repeat of gradients are in one repeat of the forward pass, each gradient is by itself.

    So each is beside its layer: the first one may have made a mask that the others take.
    """
    around: dict[str, set[int]] = {}  # of each module of the forward pass the repeats that its calls are in
    for group in tree.groups:
        if group.kind == "module" and group.lane == "forward":
            around.setdefault(group.path, set()).update(_repeat_around(tree, group.parent))
    for index, group in enumerate(tree.groups):
        if group.repeat is None or group.lane != "backward":
            continue
        paths = {path for member in group.repeat.members for path in _modules(tree, member)}
        found = [around[path] for path in paths if path in around]
        if found and (not all(found) or len(set.union(*found)) > 1):
            _dissolve(tree, index)


def _repeat_around(tree: GroupTree, container: int) -> list[int]:
    """The repeat that a container is, or is a round of, if any."""
    while container != ROOT and tree.groups[container].kind == "step":
        container = tree.groups[container].parent
    return [container] if container != ROOT and tree.groups[container].repeat is not None else []


def _dissolve(tree: GroupTree, repeat: int) -> None:
    """Has the members of a repeat stand where it stood."""
    group = tree.groups[repeat]
    assert group.repeat is not None
    inside = _taken_apart(tree, group.repeat.members)
    children = tree.children_of(group.parent)
    at = children.index(Child(True, repeat))
    tree.move(inside, group.parent)
    tree.set_children(group.parent, [*children[:at], *inside, *children[at + 1 :]])


def _taken_apart(tree: GroupTree, members: Sequence[int]) -> list[Child]:
    """What the members of a repeat are without it: themselves, or what is in a round."""
    rounds = [(member, tree.groups[member]) for member in members]
    return [one for k, of in rounds for one in (of.children if of.kind == "step" else [Child(True, k)])]


def _without_repeats(tree: GroupTree, repeat: Group, children: Sequence[Child]) -> list[Child]:
    """The same, but of repeats among the gradients of a repeat's members these members: they are a part of them."""
    assert repeat.repeat is not None
    paths = {path for member in repeat.repeat.members for path in _modules(tree, member)}
    result: list[Child] = []
    for child in children:
        inner = tree.groups[child.at].repeat if child.is_group else None
        members = inner.members if inner is not None and tree.lane_of(child) == "backward" else []
        of_modules = [_modules(tree, member) for member in members]
        complete = len(members) == repeat.repeat.count
        if not members or complete or not all(named and paths.issuperset(named) for named in of_modules):
            result.append(child)
        else:
            result += _taken_apart(tree, members)
    return result


def _rounds(tree: GroupTree, repeat: Group, children: Sequence[Child]) -> tuple[int, int, list[list[Child]]] | None:
    """Where the gradients of a repeat's members stand among children, from and to, and by member; None for nowhere.

    Ops of no module in between are with the member that they come before, where the forward pass has them behind it.
    """
    assert repeat.repeat is not None
    members = [_modules(tree, member) for member in repeat.repeat.members]
    owner = {path: k for k, paths in enumerate(members) for path in paths}
    owners = [owner.get(tree.groups[c.at].path, -1) if c.is_group else -1 for c in children]
    of = [k for k, child in enumerate(children) if owners[k] >= 0 and tree.lane_of(child) == "backward"]
    if not of:
        return None
    for before, after in pairwise(of):  # what is called in a round without a call of its own in the forward pass
        if owners[before] != owners[after] and any(child.is_group for child in children[before + 1 : after]):
            return None
    first = tree.groups[repeat.repeat.members[0]]
    loose = [child for child in first.children if not child.is_group] if first.kind == "step" else []
    lines = {tree.line_of(child) for child in loose}
    start, stop = of[0], of[-1] + 1
    behind = bool(loose) and not first.children[-1].is_group
    while behind and start and not children[start - 1].is_group and tree.line_of(children[start - 1]) in lines:
        start -= 1
    known = owners[start:stop]
    for k in range(len(known) - 2, -1, -1) if behind else range(1, len(known)):
        known[k] = known[k + 1 if behind else k - 1] if known[k] < 0 else known[k]
    order = [k for k, _ in groupby(known)]
    if sorted(order) != list(range(len(members))):
        return None
    inside = children[start:stop]
    return start, stop, [[c for c, one in zip(inside, known, strict=True) if one == k] for k in order]


def _modules(tree: GroupTree, member: int) -> list[str]:
    """The paths of the modules that a member of a repeat calls."""
    inside = [tree.groups[child.at] for child in _taken_apart(tree, [member]) if child.is_group]
    return [one.path for one in inside if one.path]
