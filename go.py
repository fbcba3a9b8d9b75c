"""One command from a fresh clone to a running strikeout: python3 go.py demo

Makes .venv on first use, installs the project and its tools into it under the pins of constraints.txt, then runs.
Later runs start at once. Needs Python 3.11 or newer and nothing else; a C++17 compiler makes it faster.
"""

import sys

# Before anything a new Python is needed for. The file must still parse on an old one, so no newer syntax below.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(f"go.py: Python 3.11 or newer is needed, this is {sys.version.split()[0]}. Install it and use that one.")

import ast
import glob
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "strikeout.stamp"  # what was installed; absent until an install has succeeded
UNFINISHED = VENV / "strikeout.unfinished"  # there from the first step of an install to its last
LOG = VENV / "install.log"
CONSTRAINTS = ROOT / "constraints.txt"

Arguments = Sequence[str]


class GoError(Exception):
    """A failure, with a message of one line that ends with the remedy."""


# --- the environment ---------------------------------------------------------------------------------------------


def fingerprint() -> str:
    """Return a digest of everything an installation depends on; .py files are not in it: the install is editable.

    Raises:
        OSError: a file cannot be read.
    """
    native = sorted(path for path in (ROOT / "native").rglob("*") if path.is_file())
    digest = hashlib.sha256(str(ROOT).encode())  # the environment holds absolute paths: a moved clone needs a new one
    for path in [ROOT / "pyproject.toml", CONSTRAINTS, ROOT / "CMakeLists.txt", *native]:
        if path.exists():
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def is_ready() -> bool:
    """Return whether the environment is complete and up to date."""
    return PYTHON.exists() and STAMP.exists() and not UNFINISHED.exists() and STAMP.read_text() == fingerprint()


def set_up(again: bool = False) -> None:
    """Make the environment, or bring it up to date; do nothing if it is ready.

    Raises:
        GoError: no environment could be made, or the packages could not be installed.
    """
    if is_ready() and not again:
        return
    with one_at_a_time():
        if not is_ready() or again:
            install()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let the second of two simultaneous first runs wait. The lock is on this file: nothing to clean up."""
    with Path(__file__).open() as file:
        with suppress(ImportError, OSError):  # Windows, and file systems without locks
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install() -> None:
    """Make .venv if it is missing or half made, then install the project into it.

    Raises:
        GoError: no environment could be made, or the packages could not be installed.
    """
    # An environment that the user made by hand (no stamp, no mark) is used as it is and never removed.
    is_ours = STAMP.exists() or UNFINISHED.exists()
    is_there = VENV.exists() and any(VENV.iterdir())
    if is_there and not is_ours and not PYTHON.exists():
        raise GoError(f"{VENV} exists but contains no Python. Remove it, then run the same command again.")
    if UNFINISHED.exists() or not PYTHON.exists():
        report("making .venv")
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir(exist_ok=True)
        UNFINISHED.touch()
        make_environment()
    elif is_ours:
        UNFINISHED.touch()
    report("installing strikeout and its tools, a minute or two the first time")
    STAMP.unlink(missing_ok=True)
    now = fingerprint()  # before the install: what is edited meanwhile is installed next time
    if not logged([str(PYTHON), "-m", "pip", "install", "-v", "-e", f"{ROOT}[dev]"]):
        raise GoError(f"the install failed: {last_error()}. {remedy()}")
    report_kernel()
    STAMP.write_text(now)
    UNFINISHED.unlink(missing_ok=True)


def make_environment() -> None:
    """Make .venv with pip in it, by the first method that works on this machine.

    Raises:
        GoError: none works.
    """
    for commands in environment_commands():
        if all(logged(command) for command in commands) and logged([str(PYTHON), "-m", "pip", "--version"]):
            return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    raise GoError(
        f"this Python cannot make an environment with pip in it (tried venv, pip, uv, virtualenv). "
        f"Install one of them, for example: apt install python{version}-venv - then run the same command again."
    )


def environment_commands() -> Iterator[list[list[str]]]:
    """Yield lists of commands that make .venv with pip in it, the ordinary one first.

    Debian ships Python without ensurepip, so plain venv may fail there: any other pip at hand is then asked to
    install itself into the new environment.
    """
    here = str(VENV)
    # Inside an environment (perhaps .venv itself) the new one is made by the Python underneath.
    base = getattr(sys, "_base_executable", None) or sys.executable
    yield [[base, "-m", "venv", here]]
    bare = [base, "-m", "venv", "--without-pip", here]
    pips = [[sys.executable, "-m", "pip"], [base, "-m", "pip"]]
    pips += [[found] for found in map(shutil.which, ("pip3", "pip")) if found]
    for pip in pips:
        yield [bare, [*pip, "--python", str(PYTHON), "install", "pip"]]
    for wheel in sorted(glob.glob("/usr/share/python-wheels/pip-*.whl")):
        yield [bare, [str(PYTHON), os.path.join(wheel, "pip"), "install", "pip"]]
    if shutil.which("uv"):
        yield [["uv", "venv", "--seed", "--allow-existing", "--python", base, here]]
    yield [[sys.executable, "-m", "virtualenv", "-p", base, here]]
    if shutil.which("virtualenv"):
        yield [["virtualenv", "-p", base, here]]


def report_kernel() -> None:
    """Print why the compiled kernel was not built, and the remedy; nothing if it was."""
    if not (ROOT / "CMakeLists.txt").exists():
        return
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('strikeout.kernels._native') is None)"
    if subprocess.call([str(PYTHON), "-c", look], cwd=VENV) == 0:
        return
    compiler = shutil.which(os.environ.get("CXX", "")) or next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler:
        why, remedy = f"{compiler} could not build the fast kernel", f"Its errors are in {LOG}; fix them"
    else:
        why, remedy = "no C++ compiler was found", "For the fast kernel install one (for example: apt install g++)"
    report(f"note: {why}, so strikeout runs on NumPy: correct, but slower. {remedy}, then: python3 go.py setup --again")


COMPILERS = ("c++", "g++", "clang++", "cl")


# --- running things ----------------------------------------------------------------------------------------------


def report(sentence: str) -> None:
    """Print a line on stderr."""
    print(f"go.py: {sentence}", file=sys.stderr, flush=True)


def pip_settings() -> dict[str, str]:
    """Return the user's own environment, with our pins for the packages and for what builds them.

    Both names, because pip 25.3 gave the build its own; as a URI, because pip splits these at spaces.
    """
    settings = {key: value for key, value in os.environ.items() if key not in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")}
    pins = CONSTRAINTS.as_uri()
    ours = {"PIP_CONSTRAINT": pins, "PIP_BUILD_CONSTRAINT": pins, "PIP_USER": "0", "PIP_NO_INPUT": "1"}
    return {**settings, **ours, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def logged(command: Arguments) -> bool:
    """Run a command with its output in the log, and return whether it succeeded."""
    with LOG.open("ab") as log:
        log.write(("\n$ " + " ".join(command) + "\n").encode())
        log.flush()
        try:
            return subprocess.call(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=pip_settings()) == 0
        except OSError as error:
            log.write(f"{error}\n".encode())
            return False


def last_log() -> str:
    """Return the output of the last logged command."""
    return LOG.read_text(errors="replace").rpartition("\n$ ")[2]


def last_error() -> str:
    """Return the first error of the last logged command: later ones are usually its consequences."""
    lines = [line.strip() for line in last_log().splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "fatal"))]
    return (errors[0] if errors else lines[-1])[:300].rstrip(".")


def remedy() -> str:
    text = last_log().lower()
    if "no space left" in text:
        return "Free some disk space, then run the same command again."
    # A conflict counts: the pins agree with each other, so one of them is not available.
    if any(sign in text for sign in ("no matching distribution", "conflict", "connection", "timed out")):
        return f"Check that pip can reach a package index, then run the same command again; the log is {LOG}"
    return f"Fix that, then run the same command again; the log is {LOG}"


def run(*command: str, where: Path | None = ROOT, **variables: str) -> int:
    """Run a command of the environment and return its exit code."""
    process = subprocess.Popen(command, cwd=where, env={**os.environ, **variables})
    while True:
        try:
            code = process.wait()
        except KeyboardInterrupt:  # the child gets it too, and prints its own message
            continue
        return 128 - code if code < 0 else code


def python(*arguments: str, where: Path | None = ROOT) -> int:
    return run(str(PYTHON), *arguments, where=where)


# --- commands ---------------------------------------------------------------------------------------------------


def setup(arguments: Arguments) -> int:
    """make the environment and nothing else; --again even if it is ready"""
    if set(arguments) - {"--again"}:
        raise GoError(f"setup does not take {' '.join(arguments)}. Run: python3 go.py setup, or with --again")
    set_up(again="--again" in arguments)
    report(f"ready: {SCRIPTS / 'strikeout'}")
    return 0


def demo(arguments: Arguments) -> int:
    """see a calibration from beginning to end"""
    return python("-m", "strikeout", "demo", *arguments, where=None)


def serve(arguments: Arguments) -> int:
    """open the desk in a browser on the book with three bad days; arguments go to strikeout serve (--port)"""
    return python("-m", "strikeout", "serve", *(arguments or ("--demo",)), where=None)


def test(arguments: Arguments) -> int:
    """run every test but the slow ones, on all cores; arguments go to pytest (one core: -n 0; slow ones: -m slow)"""
    return python("-m", "pytest", "-n", str(min(os.cpu_count() or 1, 8)), *(arguments or ("-q",)))


def check(arguments: Arguments) -> int:
    """style, types and the direction of imports"""
    tools = (("ruff", "check"), ("ruff", "format", "--check"), ("mypy",), ("lint-imports",))
    codes = [run(str(SCRIPTS / tool), *options, *arguments) for tool, *options in tools]
    return max(codes)


def tidy(arguments: Arguments) -> int:
    """format the code and apply automatic fixes"""
    ruff = str(SCRIPTS / "ruff")
    return run(ruff, "check", "--fix", *arguments) | run(ruff, "format", *arguments)


def docs(arguments: Arguments) -> int:
    """check names, links and examples of the documentation, then write it as a searchable site to build/site"""
    code = python("-m", "pytest", "-q", "tests/architecture", "-k", "docs", *arguments)
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    if code == 0 and not logged([str(PYTHON), "-m", "pip", "install", *needs]):
        raise GoError(f"the site's generator could not be installed: {last_error()}. {remedy()}")
    code = code or python("site/pages.py") or run(str(SCRIPTS / "zensical"), "build", "--strict")
    if code == 0:
        report(f"the site is in {ROOT / 'build' / 'site' / 'index.html'}")
    return code


def bench(arguments: Arguments) -> int:
    """time strikeout against its peers; arguments go to the benchmarks (--quick, names)"""
    return python("-m", "benchmarks", *arguments)


def paper(arguments: Arguments) -> int:
    """every figure and table of the paper again, as one page; arguments go to strikeout paper (--quick, sections)"""
    return python("-m", "strikeout", "paper", *arguments, where=None)


def sanitize(arguments: Arguments) -> int:
    """build the kernel with the address and undefined-behaviour sanitizers and run its tests on it"""
    compiler = os.environ.get("CXX") or next(filter(None, map(shutil.which, COMPILERS[:3])), None)
    if compiler is None:
        raise GoError("sanitize needs a C++ compiler with sanitizers. Run: apt install g++")
    there = ROOT / "build" / "sanitize"
    shutil.rmtree(there, ignore_errors=True)
    define = ["-C", "cmake.define.STRIKEOUT_SANITIZE=ON", "-C", f"build-dir={ROOT / 'build' / 'sanitize-objects'}"]
    if not logged([str(PYTHON), "-m", "pip", "install", "-v", "--no-deps", "--target", str(there), *define, str(ROOT)]):
        raise GoError(f"the sanitizer build failed: {last_error()}. {remedy()}")
    if not list(there.glob("strikeout/kernels/_native.*")):
        raise GoError(f"the kernel did not build with sanitizers; the compiler's errors are in {LOG}")
    # The C++ library beside the sanitizer's: it wraps what throws an exception, and must find it.
    libraries = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    packages = glob.glob(str(VENV / "lib" / "python*" / "site-packages")) or [str(VENV / "Lib" / "site-packages")]
    return run(
        # -S leaves the editable install out, so that the sanitized build is the one imported.
        *(str(PYTHON), "-S", "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or ("tests/kernels",))),
        PYTHONPATH=os.pathsep.join([str(there), *packages]),
        LD_PRELOAD=" ".join(libraries),
        ASAN_OPTIONS="detect_leaks=0",  # Python itself leaves memory to the end of the process
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
        STRIKEOUT_KERNEL="native",
    )


def aarch64(arguments: Arguments) -> int:
    """compile the kernel for aarch64, run it under qemu-user and compare its bits with those of x86-64"""
    if arguments:
        raise GoError(f"aarch64 takes no arguments; got {' '.join(arguments)}. Run: python3 go.py aarch64")
    host = os.environ.get("CXX") or next(filter(None, map(shutil.which, COMPILERS[:3])), None)
    tools = {"g++": host, CROSS_COMPILER: shutil.which(CROSS_COMPILER), EMULATOR: shutil.which(EMULATOR)}
    missing = [CROSS_PACKAGES[tool] for tool, found in tools.items() if found is None]
    if missing:
        raise GoError(f"aarch64 needs {', '.join(missing)}. Run: apt-get install {' '.join(missing)}")
    if platform.machine() not in ("x86_64", "AMD64"):
        raise GoError(
            f"aarch64 compares with x86-64, and this machine is {platform.machine()}. Run it on an x86-64 one."
        )
    there = ROOT / "build" / "cross"
    there.mkdir(parents=True, exist_ok=True)
    found = {
        "x86-64, plain": digests([build_digests(there / "plain", str(host), "plain")]),
        "aarch64": digests([EMULATOR, build_digests(there / "aarch64", CROSS_COMPILER, "plain", "-static")]),
    }
    if {"avx2", "fma"} <= set(Path("/proc/cpuinfo").read_text().split()):
        found["x86-64, AVX2"] = digests([build_digests(there / "avx2", str(host), "avx2", "-mavx2", "-mfma")])
    first, *others = found.values()
    differing = [name for name in first if any(other.get(name) != first[name] for other in others)]
    for name, (finite, digest) in first.items():
        verdict = "differs" if name in differing else "the same bits"
        print(f"{name:24} {int(finite):>10,} numbers  {digest}  {verdict}")
    for name in differing:
        report(
            f"{name}: " + "; ".join(f"{build} {' '.join(each.get(name, ('none',)))}" for build, each in found.items())
        )
    report(f"{len(first) - len(differing)} of {len(first)} digests are the same on {'; '.join(found)}")
    return 1 if differing else 0


CROSS_COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
CROSS_PACKAGES = {"g++": "g++", CROSS_COMPILER: "g++-aarch64-linux-gnu", EMULATOR: "qemu-user"}  # names of Debian's


def build_digests(to: Path, compiler: str, build: str, *options: str) -> str:
    """Compile native/cross/bits.cpp with the sources and flags of the kernel in CMakeLists.txt.

    Raises:
        GoError: it could not be compiled.
    """
    text = (ROOT / "CMakeLists.txt").read_text()
    listed = [re.search(rf"set\({name} (.*?)\)", text, re.DOTALL) for name in ("KERNEL_FLAGS", "KERNEL_SOURCES")]
    flags, sources = (match.group(1).split() if match else [] for match in listed)
    report(f"compiling {to.name}")
    command = [
        compiler,
        "-std=c++17",
        *flags,
        *options,
        f"-DSTRIKEOUT_BUILD={build}",
        f"-DSTRIKEOUT_ERFCX={','.join(map(repr, erfcx_numbers()))}",
        *sources,
        "native/cross/bits.cpp",
    ]
    done = subprocess.run([*command, "-pthread", "-o", str(to)], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:300])
        raise GoError(f"{to.name} could not be compiled: {first}. Fix that, then run the same command again.")
    return str(to)


def erfcx_numbers() -> list[float]:
    """Return CENTRE and COEFFICIENTS of kernels/normal.py, read from its text: NumPy may not be installed."""
    tree = ast.parse((ROOT / "src" / "strikeout" / "kernels" / "normal.py").read_text())
    found = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("CENTRE", "COEFFICIENTS")
    }
    return [found["CENTRE"], *found["COEFFICIENTS"]]


def digests(command: Arguments) -> dict[str, tuple[str, str]]:
    """Return what the program prints: by name, how many numbers there are and their digest.

    Raises:
        GoError: the program failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GoError(
            f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[:300]}. Fix that and run it again."
        )
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return {name: (finite, digest) for name, finite, digest in rows}


def fuzz(arguments: Arguments) -> int:
    """search for inputs that give neither a result nor an error: fuzz [MINUTES] [TARGET ...], 5 minutes by default"""
    return python("-m", "tests.fuzz", *arguments)


COMMANDS: dict[str, Callable[[Arguments], int]] = {
    command.__name__: command
    for command in (setup, demo, serve, test, check, tidy, docs, bench, paper, sanitize, aarch64, fuzz)
}
WITHOUT_PYTHON = ("setup", "aarch64")  # these do not use the environment, or make it themselves


def usage() -> str:
    lines = [f"  {name:9} {command.__doc__}" for name, command in COMMANDS.items()]
    return "\n".join(["usage: python3 go.py COMMAND [ARGUMENTS]", "", *lines])


def main(arguments: Arguments) -> int:
    if not arguments or arguments[0] in ("help", "-h", "--help"):
        print(usage())
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in COMMANDS:
        report(f"{name!r} is not a command; the commands are {', '.join(COMMANDS)}. Run: python3 go.py help")
        return 2
    try:
        if name not in WITHOUT_PYTHON:
            set_up()
        return COMMANDS[name](rest)
    except GoError as error:
        report(str(error))
    except KeyboardInterrupt:
        report("interrupted; run the same command again, it continues from there")
        return 130
    except OSError as error:
        report(f"{error}. Fix that, then run the same command again.")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
