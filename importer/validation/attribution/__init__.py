"""What a failure is due to: root causes of several probes, limits of engines, single settings, stages."""
