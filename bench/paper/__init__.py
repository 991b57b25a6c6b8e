"""The paper's experiments as cells: what is run (`experiments`), how (`compute`, `runner`), kept (`store`) and shown."""
