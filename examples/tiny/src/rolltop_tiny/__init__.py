"""The tiny simulator."""
