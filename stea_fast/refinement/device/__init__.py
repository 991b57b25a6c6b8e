"""The stages of a refinement in torch, for data that stays on a device."""
