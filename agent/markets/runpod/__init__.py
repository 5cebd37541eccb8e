"""RunPod: the only folder that knows its words."""
