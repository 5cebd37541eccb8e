"""RunPod: the only folder with its words."""
