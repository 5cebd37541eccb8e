"""The other market in the box: GPUs at list prices, floors for interruptible pods, stock that comes and goes."""
