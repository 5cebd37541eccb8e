"""The simulated RunPod: GPUs at list prices, floors for interruptible pods, stock that comes and goes."""
