from pathlib import Path

import pyarrow as pa
import pytest

from preplay.shards import ShardFolder

TABLE = pa.table({"a": [1, 2, 3]})


def test_written_listed_and_read(tmp_path):
    folder = ShardFolder(str(tmp_path / "new" / "folder"))
    one, two = folder.write("b-1", TABLE), folder.write("a", TABLE)
    assert folder.list() == {"a": [two], "b-1": [one]}
    table = folder.read(one)
    assert table is not None
    assert table.equals(TABLE)


def test_equal_content_is_one_file(tmp_path):
    folder = ShardFolder(str(tmp_path))
    assert folder.write("a", TABLE) == folder.write("a", TABLE)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("cut", [0, 4, 100])
def test_every_truncation_is_refused(tmp_path, cut, caplog):
    folder = ShardFolder(str(tmp_path))
    path = Path(folder.write("a", TABLE))
    path.write_bytes(path.read_bytes()[:cut])
    assert folder.read(str(path)) is None
    assert "is damaged" in caplog.text
    assert folder.list() == {}


def test_what_a_kill_left_aside_is_not_listed(tmp_path):
    folder = ShardFolder(str(tmp_path))
    path = Path(folder.write("a", TABLE))
    path.rename(path.with_name(f".{path.name}.k3x"))
    assert folder.list() == {}
