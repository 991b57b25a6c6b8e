"""Shared by all benches: their inputs, timing, and processes of their own."""
