"""What the user's code calls a variable: its attribute path, `encoder.blocks.0.kernel`, where a living module holds it.

Layers name their variables "kernel" and "bias", so messages about one of several say nothing by those names. Nobody
notes who holds a variable: whoever words a message looks through the modules that are alive.
"""

from __future__ import annotations

from collections.abc import Collection

from limelight.core import heap, variable_names
from limelight.core.variable import Variable
from limelight.module import Module


def paths_of(variables: Collection[Variable]) -> dict[int, str]:
    """The attribute paths of some variables, by uid and in their order; none for those that no module holds.

    Of several modules that hold a variable the outermost is meant, by which its path is longest. Optimisers, whose
    attributes are what they keep for variables, count where nothing else holds one. Takes time: about a microsecond
    for each object that refers to a class of modules.

    >>> import limelight as ll
    >>> model = ll.nn.Sequential(ll.nn.Dense(2), ll.nn.Dense(1))
    >>> model.build((None, 3))
    >>> list(paths_of(model.variables).values())
    ['layers.0.kernel', 'layers.0.bias', 'layers.1.kernel', 'layers.1.bias']
    """
    wanted = {v._uid for v in variables}
    found: dict[int, str] = {}
    for module in heap.living({Module: ""}):
        for path, variable in module.named_variables():
            known = found.get(variable._uid, "")
            if variable._uid in wanted and path.count("/") >= known.count("."):
                found[variable._uid] = path.replace("/", ".")
    return {v._uid: found[v._uid] for v in variables if v._uid in found}  # modules are found in no order


def path_of(variable: Variable) -> str:
    """The attribute path of a variable, or its name, "variable" by default."""
    return paths_of([variable]).get(variable._uid) or variable.name


variable_names.found_by(paths_of)
