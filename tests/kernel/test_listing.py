"""A directory that stays open is listed as it is now, on each file system.

btrfs (Linux 6.5 and later) shows a descriptor only what was there when it was opened or last rewound.

Spec: design §3.3; attacks A17; readdir(3), rewinddir(3).
"""

from __future__ import annotations

import pytest

from logdir.disk.kernel.host import HostDisk
from logdir.observe.classify import Type
from tests.kernel.images import FILE_SYSTEMS, Images

pytestmark = pytest.mark.root


@pytest.mark.parametrize("kind", FILE_SYSTEMS)
def test_a_directory_that_is_open_is_listed_as_it_is_now(kind: str, images: Images) -> None:
    disk = images.mount(images.make(kind), kind)
    path = disk.path / "listed"
    path.mkdir()
    with HostDisk().open_top(str(path)) as directory:
        for number in range(3):
            (path / f"{number}").touch()
            assert directory.names() == [f"{one}" for one in range(number + 1)]
        (path / "3").mkdir()
        assert directory.types() == {"0": Type.FILE, "1": Type.FILE, "2": Type.FILE, "3": Type.DIRECTORY}
        (path / "1").unlink()
        assert directory.names() == ["0", "2", "3"]
    images.forget(disk)
