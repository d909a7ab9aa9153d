"""The proof without Python: the digits classifier of the first lesson gives the same probabilities in Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'limelight[onnx]'")
pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'limelight[workshop]'")

from sklearn import datasets

import limelight as ll

SOURCES = Path(__file__).parents[3] / "widgets" / "js"


def classifier(pixels, labels):
    """The network of the first lesson, trained for a few epochs."""
    generator = ll.random.Generator(7)
    w1 = ll.Variable(generator.normal((64, 48), stddev=0.2), name="w1")
    b1 = ll.Variable(ll.zeros((48,)), name="b1")
    w2 = ll.Variable(generator.normal((48, 10), stddev=0.2), name="w2")
    b2 = ll.Variable(ll.zeros((10,)), name="b2")

    def network(images):
        return ll.nn.relu(images @ w1 + b1) @ w2 + b2

    @ll.function
    def train_step(images, labels):
        with ll.GradientTape() as tape:
            loss = ll.nn.softmax_cross_entropy(network(images), labels).mean()
        for variable, gradient in zip((w1, b1, w2, b2), tape.gradient(loss, [w1, b1, w2, b2]), strict=True):
            variable.assign_sub(0.3 * gradient)
        return loss

    for _ in range(4):
        for start in range(0, len(pixels) - 31, 32):
            train_step(ll.constant(pixels[start : start + 32]), ll.constant(labels[start : start + 32]))
    return lambda images: ll.nn.softmax(network(images))


def test_the_digits_classifier_gives_the_same_probabilities_in_node(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("there is no Node on the path (install Node.js 20 or newer)")
    if not (SOURCES / "node_modules" / "onnxruntime-web").exists():
        pytest.skip("onnxruntime-web is not installed: python scripts/javascript.py test does it")
    digits = datasets.load_digits()
    pixels = (digits.data / 16.0).astype(np.float32)
    probabilities = classifier(pixels[:1437], digits.target[:1437])
    held_out = pixels[1437:]
    expected = probabilities(ll.constant(held_out)).numpy()
    assert (expected.argmax(1) == digits.target[1437:]).mean() > 0.85  # it has learned to read

    path = ll.export.onnx(probabilities, tmp_path / "digits.onnx", ll.TensorSpec((None, 64)))
    told = json.dumps({"shape": list(held_out.shape), "data": held_out.reshape(-1).tolist()})
    run = subprocess.run(
        ["node", str(SOURCES / "run_onnx.mjs"), str(path)], input=told, capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout)
    assert found["shape"] == list(expected.shape)
    np.testing.assert_allclose(np.reshape(found["data"], expected.shape), expected, rtol=0, atol=1e-5)
