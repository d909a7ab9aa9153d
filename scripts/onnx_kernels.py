"""Write the table of dtypes for which onnxruntime has kernels, by trying each: `python scripts/onnx_kernels.py`.

For each op that lowerings use a model of one node is loaded with each dtype; what onnxruntime has not implemented is
left out. The table is engine/limelight/export/to_onnx/kernel_dtypes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import defs, helper

from limelight.export.to_onnx.kernel_dtypes import KERNEL_DTYPES
from limelight.export.to_onnx.model import OPSET

TABLE = Path(__file__).resolve().parent.parent / "engine" / "limelight" / "export" / "to_onnx" / "kernel_dtypes.py"
DTYPES = {"float": "float32", "double": "float64", "bool": "bool"} | {
    name: name for size in (8, 16, 32, 64) for name in (f"int{size}", f"uint{size}")
}
"""The dtypes by ONNX's names; 16-bit floats are computed in float32 in any case."""
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "MaxPool": {"kernel_shape": [2]},
    "AveragePool": {"kernel_shape": [2]},
    "Einsum": {"equation": "ij->i"},
    "BitShift": {"direction": "LEFT"},
    "Concat": {"axis": 0},
    "Split": {"num_outputs": 1},
}
UNIFORM = {"Where": 1, "OneHot": 2}
"""Which input has the dtype that counts, where that is not the first."""
_HEAD = '''"""For which dtypes onnxruntime has kernels on the CPU, by op of ONNX: by `scripts/onnx_kernels.py`."""

from __future__ import annotations

from typing import Final

KERNEL_DTYPES: Final[dict[str, frozenset[str]]] = {
    op: frozenset(names.split())
    for op, names in (
'''


def kernels(op: str) -> Iterator[str]:
    """The dtypes for which a model of this op can be loaded."""
    schema = defs.get_schema(op, OPSET)
    allowed = {c.type_param_str: list(c.allowed_type_strs) for c in schema.type_constraints}
    main = schema.inputs[UNIFORM.get(op, 0)].type_str
    for onnx_name, name in DTYPES.items():
        if f"tensor({onnx_name})" in allowed.get(main, [main]) and _loads(op, schema, allowed, main, onnx_name):
            yield name


def _loads(op: str, schema: Any, allowed: dict[str, list[str]], main: str, onnx_name: str) -> bool:
    """Whether onnxruntime has a kernel for this op and dtype."""
    bound = {main: f"tensor({onnx_name})"}

    def infos(values: Any, letter: str) -> list[Any]:
        made = []
        for value in values:
            if "Optional" in str(value.option):
                continue
            choice = allowed.get(value.type_str, [value.type_str])
            kind = bound.setdefault(value.type_str, next((c for c in choice if c == "tensor(int64)"), choice[0]))
            dtype = helper.np_dtype_to_tensor_dtype(np.dtype(DTYPES[kind[7:-1]]))
            made.append(helper.make_tensor_value_info(f"{letter}_{value.name}", dtype, None))
        return made

    inputs, outputs = infos(schema.inputs, "i"), infos(schema.outputs, "o")
    attributes = {"fmod": int(onnx_name in ("float", "double"))} if op == "Mod" else ATTRIBUTES.get(op, {})
    node = helper.make_node(op, [x.name for x in inputs], [y.name for y in outputs], **attributes)
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(helper.make_graph([node], "one", inputs, outputs), opset_imports=[opset])
    model.ir_version = helper.find_min_ir_version_for([opset])
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001  # its errors have no common class
        return "NOT_IMPLEMENTED" not in str(error)
    return True


if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(4)
    rows = [f'        ("{op}", "{" ".join(kernels(op))}"),\n' for op in sorted(KERNEL_DTYPES)]
    TABLE.write_text(_HEAD + "".join(rows) + "    )\n}\n", encoding="utf-8")
