"""TensorRT in this process, built in another."""
