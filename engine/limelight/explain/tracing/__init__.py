"""What happens only while tracing: values that become constants, side effects, draws of the host."""
