"""What GPUs cost elsewhere: dated, sourced figures to compare with."""
