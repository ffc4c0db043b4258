"""The session: a JVM found or one line why not, and none left behind."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from migrate import jvm
from migrate.errors import SessionError
from migrate.session import configuration, driver_memory, first_line, is_local, python_path

MODULES = "java.base jdk.incubator.vector java.sql"


def runtime(folder: Path, version: str, modules: str = MODULES) -> Path:
    """Make a directory that looks like a Java runtime."""
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    (folder / "bin" / "java").write_text('#!/bin/sh\nfor a do printf "%s\\n" "$a"; done\n')
    (folder / "bin" / "java").chmod(0o755)
    return folder


def test_java_home_wins_over_path(tmp_path: Path) -> None:
    chosen, other = runtime(tmp_path / "a", "17.0.1"), runtime(tmp_path / "b", "21")
    found = jvm.find({"JAVA_HOME": str(chosen), "PATH": str(other / "bin")})
    assert (found.home, found.major, found.needs_shim) == (chosen, 17, False)


def test_java_home_that_will_not_do_is_not_passed_over(tmp_path: Path) -> None:
    good = str(runtime(tmp_path / "good", "21") / "bin")
    for home in (runtime(tmp_path / "old", "1.8.0_392"), tmp_path / "none"):
        with pytest.raises(SessionError, match="JAVA_HOME"):
            jvm.find({"JAVA_HOME": str(home), "PATH": good})


def test_old_java_on_path_gives_way_to_the_bundled_one(tmp_path: Path) -> None:
    path = str(runtime(tmp_path / "old", "11.0.2") / "bin")
    bundled = runtime(tmp_path / "bundled", "25.0.2", "java.base")
    found = jvm.find({"PATH": path}, bundled=bundled)
    assert (found.home, found.major, found.needs_shim) == (bundled, 25, True)


def test_no_java_is_one_line_with_a_way_out(tmp_path: Path) -> None:
    old = str(runtime(tmp_path / "old", "11.0.2") / "bin")
    for path, said in ((old, "Java 11"), (str(tmp_path), "none")):
        with pytest.raises(SessionError, match=said) as caught:
            jvm.find({"PATH": path}, bundled=tmp_path / "nothing")
        assert "pip install" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_start_script_drops_one_argument_and_keeps_the_others(tmp_path: Path) -> None:
    slim = jvm.Jvm(home=runtime(tmp_path / "it's $HOME", "25", "java.base"), major=25, needs_shim=True)
    blocked = tmp_path / "blocked"
    blocked.touch()
    home = jvm.java_home(slim, (blocked, tmp_path / "cache"))
    assert home.is_relative_to(tmp_path / "cache")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "*", "--add-modules=other"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == ["-Xmx1g", "a b", "", "*", "--add-modules=other"]
    assert jvm.java_home(slim, (blocked, tmp_path / "cache")) == home


def test_full_runtime_needs_no_script(tmp_path: Path) -> None:
    whole = jvm.Jvm(home=tmp_path, major=17, needs_shim=False)
    assert jvm.java_home(whole, ()) == tmp_path


@pytest.mark.parametrize(
    ("environ", "expected"),
    [({"XDG_CACHE_HOME": "/c"}, "/c/logdird"), ({"XDG_CACHE_HOME": "c", "HOME": "/h"}, "/h/.cache/logdird")],
)
def test_cache_lies_where_xdg_says(environ: dict[str, str], expected: str) -> None:
    assert str(jvm.cache_dir(environ)) == expected


def test_settings_bind_to_this_machine_only_where_all_of_it_runs_here(tmp_path: Path) -> None:
    local = configuration("local[2]", folder=tmp_path, memory="3g", shuffle_partitions=2, given={"spark.x": "1"})
    assert local["spark.driver.bindAddress"] == "127.0.0.1"
    assert (local["spark.driver.memory"], local["spark.sql.shuffle.partitions"], local["spark.x"]) == ("3g", "2", "1")
    assert local["spark.ui.enabled"] == "false"
    cluster = configuration("yarn", folder=tmp_path, memory=None, shuffle_partitions=32, given={})
    assert "spark.driver.bindAddress" not in cluster
    assert is_local("local[*]")
    assert not is_local("local-cluster[2,1,1024]")


def test_memory_is_half_the_machine_within_bounds() -> None:
    assert driver_memory(2**34) == "4096m"
    assert driver_memory(1) == "1024m"


def test_message_of_ours_is_found_in_a_worker_s_text() -> None:
    text = "An error\n  File x\nmigrate.errors.RemoteWalkError: walk-on-cluster: /a: no\n"
    assert first_line(ValueError(text)) == "walk-on-cluster: /a: no"
    assert first_line(ValueError("\n  first \nsecond")) == "first"


def test_workers_find_us() -> None:
    assert (Path(python_path()[0]) / "migrate" / "session.py").is_file()


def run(script: str, tmp_path: Path, *, warnings: str = "error", **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAVA_")}
    tmp_path.mkdir(exist_ok=True)
    kept |= {"PYTHONPATH": python_path()[0], "TMPDIR": str(tmp_path)} | environ
    return subprocess.run(
        [sys.executable, "-W", warnings, "-c", textwrap.dedent(script)],
        capture_output=True, text=True, env=kept, cwd=tmp_path, timeout=280, check=False,
    )  # fmt: skip


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").exists() and b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.slow
@pytest.mark.spark
def test_session_is_silent_and_leaves_nothing(spark: object, tmp_path: Path) -> None:
    done = run(
        """
        import os
        from migrate.session import spark_session
        before = dict(os.environ)
        with spark_session(memory="1g") as spark:
            with spark_session() as lent:
                assert lent is spark
            assert spark.range(10).count() == 10
            assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
            print(spark.sparkContext.master, spark.sparkContext._gateway.proc.pid)
        assert dict(os.environ) == before
        """,
        tmp_path / "work",
        LOGDIRD_SPARK_MASTER="local[1]",
    )
    assert done.stderr == ""
    assert done.returncode == 0
    master, pid = done.stdout.split()
    assert master == "local[1]"
    assert not is_alive(int(pid))
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.slow
@pytest.mark.spark
def test_failed_job_is_one_line_that_names_the_log(spark: object, tmp_path: Path) -> None:
    done = run(
        """
        from migrate.errors import SessionError
        from migrate.session import spark_session
        try:
            with spark_session("local[1]", memory="1g") as spark:
                print(spark.sparkContext._gateway.proc.pid)
                spark.sql("select raise_error('broken here')").collect()
        except SessionError as error:
            print(error)
        """,
        tmp_path / "work",
    )
    assert done.stderr == ""
    pid, line = done.stdout.splitlines()
    assert not is_alive(int(pid))
    assert "broken here" in line
    (folder,) = (tmp_path / "work").iterdir()
    assert [path.name for path in folder.iterdir()] == ["jvm.log"]
    assert str(folder / "jvm.log") in line


@pytest.mark.spark
@pytest.mark.slow
def test_jvm_dies_with_the_process(spark: object, tmp_path: Path) -> None:
    done = run(
        """
        import os, signal
        from migrate.session import spark_session
        with spark_session("local[1]", memory="1g") as spark:
            print(spark.sparkContext._gateway.proc.pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        tmp_path / "work",
    )
    pid = int(done.stdout)
    for _ in range(200):
        if not is_alive(pid):
            break
        subprocess.run(["sleep", "0.1"], check=True)
    assert not is_alive(pid)


@pytest.mark.slow
@pytest.mark.spark
def test_jvm_that_will_not_start_is_one_line(spark: object, tmp_path: Path) -> None:
    broken = runtime(tmp_path / "java", "17.0.1")
    (broken / "bin" / "java").write_text("#!/bin/sh\necho no luck >&2\nexit 3\n")
    done = run(
        """
        from migrate.errors import SessionError
        from migrate.session import spark_session
        try:
            with spark_session("local[1]"):
                pass
        except SessionError as error:
            print(error)
        """,
        tmp_path / "work",
        warnings="default::SyntaxWarning",  # pyspark drops the pipe of a JVM that would not start
        JAVA_HOME=str(broken),
    )
    assert done.stderr == ""
    assert "expected Spark to start" in done.stdout
    (folder,) = (tmp_path / "work").iterdir()
    assert "no luck" in (folder / "jvm.log").read_text()


@pytest.mark.spark
@pytest.mark.slow
def test_walking_is_refused_by_the_task_itself(spark: object, tmp_path: Path) -> None:
    """A real cluster of two more JVMs, whose tasks look at the master themselves."""
    (tmp_path / "disk" / "t-0").mkdir(parents=True)
    (tmp_path / "fleet.yaml").write_text(
        f"clusters: [{{name: a, brokers: [{{node_id: 1, log_dirs: [{tmp_path}/disk]}}]}}]"
    )
    # Spark's own cluster for tests keeps its applications' folders inside the installation, and no setting moves them.
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    kept = Path(spec.origin).parent / "work"
    before = set(kept.glob("*"))
    done = run(
        """
        import sys
        from migrate.errors import SessionError
        from migrate.session import spark_session
        try:
            with spark_session("local-cluster[1,1,1024]", memory="1g") as spark:
                load = spark.read.format("logdir")
                print(load.option("shared-paths", "true").load(sys.argv[1]).count(), flush=True)
                load.option("shared-paths", "false").load(sys.argv[1]).count()
        except SessionError as error:
            print(error)
        """.replace("sys.argv[1]", repr(str(tmp_path / "fleet.yaml"))),
        tmp_path / "work",
    )
    for folder in set(kept.glob("*")) - before:
        shutil.rmtree(folder)
    assert done.stdout.startswith("2\n"), done.stdout + done.stderr
    assert "walk-on-cluster" in done.stdout
    assert "take inventories on the brokers, or add --shared-paths" in done.stdout


@pytest.mark.slow
@pytest.mark.spark
def test_the_data_source_is_not_lost_on_a_script_that_no_activated_environment_runs(
    spark: object, tmp_path: Path
) -> None:
    """A session of the script's own, another folder, and nothing in the environment but where Java is."""
    (tmp_path / "disk" / "t-0").mkdir(parents=True)
    (tmp_path / "fleet.yaml").write_text(
        f"clusters: [{{name: a, brokers: [{{node_id: 1, log_dirs: [{tmp_path}/disk]}}]}}]"
    )
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "job.py").write_text(
        textwrap.dedent(
            """
            import sys
            from pyspark.sql import SparkSession

            session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
            print(session.read.format("logdir").load(sys.argv[1]).count())
            print(session.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).first())
            session.stop()
            """
        )
    )
    home = jvm.java_home(jvm.find(os.environ), (tmp_path / "java",))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "job.py"), str(tmp_path / "fleet.yaml")],
        capture_output=True, text=True, env={"JAVA_HOME": str(home)}, cwd=tmp_path / "elsewhere",
        timeout=280, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["2", sys.executable], done.stderr[-2000:]
    assert done.returncode == 0
