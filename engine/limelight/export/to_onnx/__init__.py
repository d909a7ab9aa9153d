"""Traces as files of ONNX."""
