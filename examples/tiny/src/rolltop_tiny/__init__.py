"""The tiny simulator: what a program has to do so that rolltop can run it, and little else.

`conf/sim/tiny.yaml` describes it, `service.py` is one instance of a service, `worker.py` drives
rollouts through the services, `world.py` is the world. It needs no gRPC and starts in a moment.
"""
