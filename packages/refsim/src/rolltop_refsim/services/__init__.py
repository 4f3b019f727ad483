"""The simulation's services: plain classes that know no transport, and the process that hosts one.

``python -m rolltop_refsim.services NAME --port ...`` serves one of them.
"""
