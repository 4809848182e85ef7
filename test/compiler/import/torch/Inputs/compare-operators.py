"""Compares the operators that python/dtc/torch/operators.py leaves to dtc-import with those of the rules: compare-operators.py ROOT"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "python" / "dtc" / "torch"))
import operators  # noqa: E402

sources = (root / "compiler" / "import" / "torch").glob("*.cpp")
rules = {name for source in sources for name in re.findall(r'\{"aten\.(\w+)",', source.read_text())}
if rules != operators.CONVERTED:
    sys.exit(f"only in Python: {sorted(operators.CONVERTED - rules)}, only in C++: {sorted(rules - operators.CONVERTED)}")
print(len(rules), "operators")
