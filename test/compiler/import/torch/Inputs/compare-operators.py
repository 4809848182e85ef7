"""Compares the operators that python/dtc leaves to dtc-import, those of torch/operators.py and those that jax/capture.py and
jax/rules.py write, with those of the rules: compare-operators.py ROOT"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "python" / "dtc" / "torch"))
import operators  # noqa: E402

sources = (root / "compiler" / "import" / "torch").glob("*.cpp")
rules = {name for source in sources for name in re.findall(r'\{"aten\.(\w+)",', source.read_text())}
text = "".join((root / "python" / "dtc" / "jax" / f"{name}.py").read_text() for name in ("capture", "rules"))
calls = re.findall(r'(?:emit|reduction|with_number|logic)\(eqn, (?:\w+, )*"(\w+)"(?:, "(\w+)")?', text)
simple = re.search(r"^SIMPLE = \{(.*?)\}", text, re.DOTALL | re.MULTILINE)
of_jax = {name for call in calls for name in call if name} | set(re.findall(r': "(\w+)"', simple[1]))
if len(of_jax) < 40:
    sys.exit(f"only {len(of_jax)} operators of JAX were found: {sorted(of_jax)}")
used = operators.CONVERTED | of_jax
if rules != used:
    sys.exit(f"only in Python: {sorted(used - rules)}, only in C++: {sorted(rules - used)}")
print(len(rules), "operators")
