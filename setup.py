"""The one step of the build that ``pyproject.toml`` has no word for: a ``.pth`` file at the top of site-packages.

Spark asks ``python3`` on the ``PATH`` for its data sources unless ``PYSPARK_PYTHON`` names an interpreter. The file
names the one of the environment it is installed in, so that a script run by it finds the source ``logdir``.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PTH = Path("migrate", "logdird-spark.pth")


class BuildWithPth(build_py):
    """Put ``logdird-spark.pth`` beside the packages; an editable install gets it from ``.ci/setup``."""

    def run(self) -> None:
        """Build, and copy the file."""
        super().run()
        if not self.editable_mode:
            self.copy_file(str(PTH), str(Path(self.build_lib, PTH.name)))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return every file of the build, this one too."""
        return [*super().get_outputs(include_bytecode), str(Path(self.build_lib, PTH.name))]


setup(cmdclass={"build_py": BuildWithPth})
