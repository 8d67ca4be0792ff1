"""Writes schemas.json: inputs and attributes of every version of every operator of ONNX's default domain.

Needs the onnx package. One line per version: [operator, since, least inputs, most inputs, {attribute: [type, required, default]}].
"""
import json
import os

import onnx
from onnx import defs, helper

rows = []
for s in defs.get_all_schemas_with_history():
    if s.domain or s.deprecated:
        continue
    attrs = {}
    for a in s.attributes.values():
        default = None
        if not a.required and a.default_value.name:
            default = helper.get_attribute_value(a.default_value)
            if isinstance(default, list):
                default = [d.decode() if isinstance(d, bytes) else d for d in default]
            if isinstance(default, bytes):
                default = default.decode()
            if isinstance(default, (onnx.TensorProto, onnx.GraphProto)):
                default = None
        attrs[a.name] = [int(a.type.value), a.required, default]
    rows.append([s.name, s.since_version, s.min_input, min(s.max_input, 2**30), attrs])
rows.sort(key=lambda r: (r[0], r[1]))

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schemas.json")
with open(out, "w") as f:
    f.write('{"made_with": "onnx %s", "newest": %d, "rows": [\n' % (onnx.__version__, defs.onnx_opset_version()))
    f.write(",\n".join(json.dumps(r) for r in rows) + "\n]}\n")
