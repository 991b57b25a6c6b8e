"""Shared by the tests of failing disks and killed writers."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """Thousands of small files are flushed here; that the call is made is what counts."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
