"""What EcholoKernel must do in Python."""
