"""RunPod's storage apart from an instance's own disks."""
