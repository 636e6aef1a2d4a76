"""What the packages that sample GPUs share."""
