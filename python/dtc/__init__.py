"""The Python side of dtc: models of other frameworks become files that dtc-import reads."""
