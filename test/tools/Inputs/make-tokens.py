#!/usr/bin/env python3
"""Writes a file of random bytes from 0 to limit - 1: make-tokens.py OUT COUNT LIMIT."""

import random
import sys

generator = random.Random(1)
with open(sys.argv[1], "wb") as file:
    file.write(bytes(generator.randrange(int(sys.argv[3])) for _ in range(int(sys.argv[2]))))
