"""go.py: from a fresh clone to a running strikeout, and one line that says what to do where that fails."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OLD_PYTHON = "import sys, runpy; sys.version_info = (3, 8, 1); sys.version = '3.8.1 (old)'; runpy.run_path({!r})"

# A Python that makes environments only without pip, as Debian's does until python3-venv is installed.
WITHOUT_ENSUREPIP = """#!/bin/sh
case "$*" in
  *--without-pip*) ;;
  "-m venv"*) echo "ensurepip is not available"; exit 1 ;;
esac
exec {} "$@"
"""


def go(*words: str, root: Path = ROOT, where: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    command = [sys.executable, str(root / "go.py"), *words]
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)


def load(root: Path):
    """go.py of another clone, as a module."""
    spec = importlib.util.spec_from_file_location("go_of_a_clone", root / "go.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def clone(tmp_path):
    """A clone with a space in its path, as small as go.py needs."""
    root = tmp_path / "a clone"
    (root / "native").mkdir(parents=True)
    (root / "src" / "strikeout").mkdir(parents=True)
    for name in ("go.py", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, root / name)
    (root / "native" / "kernel.cpp").write_text("int x;\n")
    (root / "src" / "strikeout" / "__init__.py").write_text("")
    return root


def test_aarch64_names_the_packages_it_needs(tmp_path):
    done = go("aarch64", PATH=str(tmp_path), CXX="")
    assert done.returncode == 1
    assert_one_line_that_helps(done, "apt-get install g++ g++-aarch64-linux-gnu qemu-user")


def test_aarch64_compares_every_digest_of_every_build(monkeypatch, capsys, tmp_path):
    """With the compiler and the emulator left out: one digest that differs is named, and is a failure."""
    there = load(ROOT)
    builds = {"plain": {"exp": ("3", "aa"), "log": ("3", "bb")}, "aarch64": {"exp": ("3", "aa"), "log": ("3", "cc")}}
    monkeypatch.setattr(there, "ROOT", tmp_path)
    monkeypatch.setattr(there.shutil, "which", lambda name: name)
    monkeypatch.setattr(there.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(there, "build_digests", lambda to, *_: to.name)
    monkeypatch.setattr(there, "digests", lambda command: builds.get(command[-1], builds["plain"]))
    assert there.aarch64([]) == 1
    said = capsys.readouterr()
    assert [line.split()[-1] for line in said.out.splitlines()] == ["bits", "differs"]
    assert "1 of 2 digests are the same" in said.err
    builds["aarch64"] = builds["plain"]
    assert there.aarch64([]) == 0


def assert_one_line_that_helps(done, *words: str):
    """The last line is ours and says what to do; no traceback anywhere."""
    assert "Traceback" not in done.stderr + done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("go.py: ")
    assert [word for word in words if word not in last] == []


def test_it_needs_nothing_but_the_standard_library():
    tree = ast.parse((ROOT / "go.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {a.name for n in imports if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in imports if isinstance(n, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) == set()


def test_an_old_python_is_told_so_in_one_line():
    ast.parse((ROOT / "go.py").read_text(), feature_version=(3, 7))
    code = OLD_PYTHON.format(str(ROOT / "go.py"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert_one_line_that_helps(done, "3.11 or newer", "3.8.1")


def test_without_a_word_it_lists_the_words(tmp_path):
    done = go(where=tmp_path)
    assert done.returncode == 2
    assert {"setup", "demo", "test", "check", "bench"} <= set(done.stdout.split())


def test_an_unknown_word_is_answered_with_the_known_ones():
    done = go("tset")
    assert done.returncode == 2
    assert_one_line_that_helps(done, "'tset'", "test")


def test_the_makefile_has_every_command():
    line = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("COMMANDS"))
    assert set(line.split()[2:]) == {*load(ROOT).COMMANDS, "help"}


def test_editing_python_needs_no_new_install(clone):
    before = load(clone).fingerprint()
    (clone / "src" / "strikeout" / "__init__.py").write_text("x = 1\n")
    assert load(clone).fingerprint() == before


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "constraints.txt", "CMakeLists.txt", "native/kernel.cpp", "native/b.hpp"]
)
def test_editing_what_is_installed_needs_a_new_install(clone, name):
    before = load(clone).fingerprint()
    with (clone / name).open("a") as file:
        file.write("# changed\n")
    assert load(clone).fingerprint() != before


def test_a_clone_that_moved_needs_a_new_install(clone):
    before = load(clone).fingerprint()
    moved = clone.rename(clone.parent / "moved")
    assert load(moved).fingerprint() != before


def test_an_environment_is_ready_when_finished_and_up_to_date_only(clone):
    there = load(clone)
    assert not there.is_ready()
    there.PYTHON.parent.mkdir(parents=True)
    there.PYTHON.touch()
    assert not there.is_ready()
    there.STAMP.write_text(there.fingerprint())
    assert there.is_ready()
    there.UNFINISHED.touch()
    assert not there.is_ready()
    there.UNFINISHED.unlink()
    there.STAMP.write_text("another")
    assert not there.is_ready()


def test_a_failed_install_ends_in_one_line_and_begins_anew_the_next_time(clone):
    nowhere = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    first = go("demo", root=clone, where=clone.parent, **nowhere)
    assert first.returncode == 1
    assert_one_line_that_helps(first, "package index", "run the same command again")
    (clone / ".venv" / "left-over").touch()
    second = go("setup", root=clone, where=clone.parent, **nowhere)
    assert second.returncode == 1
    assert "making .venv" in second.stderr
    assert not (clone / ".venv" / "left-over").exists()


def test_an_environment_made_by_hand_is_never_removed(clone):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(clone / ".venv")], check=True)
    (clone / ".venv" / "precious").touch()
    done = go("setup", root=clone)
    assert done.returncode == 1
    assert_one_line_that_helps(done, "pip")
    assert (clone / ".venv" / "precious").exists()


def test_a_folder_in_the_way_is_left_alone_and_named(clone):
    (clone / ".venv").mkdir()
    (clone / ".venv" / "notes.txt").write_text("mine")
    done = go("setup", root=clone)
    assert done.returncode == 1
    assert_one_line_that_helps(done, ".venv", "Remove it")
    assert (clone / ".venv" / "notes.txt").read_text() == "mine"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_of_two_first_runs_the_second_waits_for_the_first(clone):
    there = load(clone)
    with there.one_at_a_time():
        command = [sys.executable, str(clone / "go.py"), "setup"]
        second = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(timeout=1.0)
        there.PYTHON.parent.mkdir(parents=True)
        there.PYTHON.touch()
        there.STAMP.write_text(there.fingerprint())
    _, said = second.communicate(timeout=60)
    assert second.returncode == 0
    assert "ready" in said
    assert "installing" not in said


@pytest.mark.parametrize(("code", "expected"), [("import sys; sys.exit(7)", 7), ("pass", 0)])
def test_the_exit_code_is_passed_on(code, expected):
    assert load(ROOT).run(sys.executable, "-c", code) == expected


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_a_killed_command_gives_the_exit_code_a_shell_would_give():
    assert load(ROOT).run(sys.executable, "-c", "import os; os.kill(os.getpid(), 15)") == 128 + 15


def test_the_fast_kernel_is_installed_where_a_compiler_works(tmp_path):
    """A kernel that stopped compiling would otherwise go unseen: the install then falls back to NumPy."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    (tmp_path / "a.cpp").write_text("#include <optional>\nint main() { return std::optional<int>(0).value(); }\n")
    if not compiler or subprocess.run([compiler, "-std=c++17", "a.cpp"], cwd=tmp_path, check=False).returncode:
        pytest.skip("no C++17 compiler works here")
    native = importlib.util.find_spec("strikeout.kernels._native")
    assert native is not None, "the kernel is not built; see why with: python3 go.py setup --again"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the stand-in for Debian's Python is a shell script")
def test_a_fresh_clone_sets_itself_up_without_ensurepip_and_without_a_compiler(tmp_path):
    """About a minute, and it needs a package index."""
    root = tmp_path / "fresh clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(root)], check=True)
    like_debian = tmp_path / "python"
    like_debian.write_text(WITHOUT_ENSUREPIP.format(sys.executable))
    like_debian.chmod(0o755)
    code = f"import sys, runpy; sys._base_executable = {str(like_debian)!r}; sys.argv = ['go.py', 'setup']; "
    code += f"runpy.run_path({str(root / 'go.py')!r}, run_name='__main__')"
    nothing = {**os.environ, "CC": "/nonexistent", "CXX": "/nonexistent", "PATH": "/nonexistent"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=nothing, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ensurepip is not available" in (root / ".venv" / "install.log").read_text()
    assert "runs on NumPy" in done.stderr
    look = "import strikeout; print(len(strikeout.paper.quotes('small')))"
    seen = subprocess.run([root / ".venv/bin/python", "-c", look], capture_output=True, text=True, check=False)
    assert seen.stdout.strip() == "540", seen.stderr
    again = go("setup", root=root, where=tmp_path)
    assert "installing" not in again.stderr
