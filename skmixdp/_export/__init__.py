"""Fitted estimators as models of other libraries: ONNX and scikit-learn."""
