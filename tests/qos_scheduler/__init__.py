"""Case files of the QoS-driven scheduler, run against its rules: `python -m tests.qos_scheduler DIR`."""
