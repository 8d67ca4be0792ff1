"""Writes ONNX's own operator tests as folders: DIR/<name>/model.onnx and DIR/<name>/test_data_set_0/{input,output}_N.pb.

Needs the onnx package. Usage: backend.py DIR. Tests with sequences or maps are left out.
"""
import os
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

warnings.filterwarnings("ignore")


def tensors(values, infos):
    for value, info in zip(values, infos):
        if value is None or isinstance(value, (list, dict)):
            raise ValueError(info.name)
        if not isinstance(value, onnx.TensorProto):
            value = numpy_helper.from_array(np.asarray(value), info.name)
        value.name = info.name
        yield value


def main(root):
    count = 0
    for case in collect_testcases(None):
        if case.model is None or not case.data_sets:
            continue
        graph, (inputs, outputs) = case.model.graph, case.data_sets[0]
        try:
            files = {
                f"{kind}_{i}.pb": t.SerializeToString()
                for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output))
                for i, t in enumerate(tensors(values, infos))
            }
        except (TypeError, ValueError, NotImplementedError):
            continue
        folder = os.path.join(root, case.name)
        os.makedirs(os.path.join(folder, "test_data_set_0"), exist_ok=True)
        with open(os.path.join(folder, "model.onnx"), "wb") as f:
            f.write(case.model.SerializeToString())
        for name, data in files.items():
            with open(os.path.join(folder, "test_data_set_0", name), "wb") as f:
                f.write(data)
        count += 1
    print(count, "tests")


main(sys.argv[1])
