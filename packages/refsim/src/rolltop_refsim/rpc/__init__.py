"""What goes over the wire: protos, their generated code, and how servers and channels are set up.

``python -m rolltop_refsim.rpc.generate`` writes the generated modules again.
"""
