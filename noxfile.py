"""Sessions for contributors. `nox -l` lists them, `nox -s lint` runs one.

Sessions install what ``constraints.txt`` says, `oldest` and `newest` what the files of their names
say. `.ci/run` does not need nox: it runs all of this except `oldest`, `newest`, `pretrained`,
`coverage`, `links` and `benchmarks` in its own environments.
"""

from __future__ import annotations

from pathlib import Path

import nox

nox.options.sessions = ["tests", "lint", "types", "docs"]
nox.options.reuse_venv = "yes"
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE", "MPLBACKEND": "Agg"}
GENERATED = {"_build", "auto_examples", "generated"}  # folders of docs
TIMED = ("loss_engine", "overhead", "graph_epoch")


def install(session, extras, constraints="constraints.txt"):
    """Install skcontrast from the tree with some of its extras."""
    session.env.update(ENVIRONMENT)
    session.install("-c", constraints, "-e", f".[{extras}]")


@nox.session
def tests(session):
    """The tests, or those that are named: nox -s tests -- tests/losses."""
    install(session, "test")
    session.run("pytest", *session.posargs)


@nox.session
def oldest(session):
    """The tests with the oldest versions that pyproject.toml admits."""
    install(session, "test", "constraints-oldest.txt")
    session.run("pytest", *session.posargs)


@nox.session
def newest(session):
    """The tests with the newest versions, torch among them."""
    install(session, "test", "constraints-newest.txt")
    session.run("pytest", *session.posargs)


@nox.session
def pretrained(session):
    """The tests of networks of timm and transformers, which need a torch with torchvision."""
    session.env.update(ENVIRONMENT)
    session.install("torch", "torchvision", "transformers", "-e", ".[test,pretrained]")
    session.run("pytest", "tests/encoders/test_pretrained_libraries.py", *session.posargs)


@nox.session
def coverage(session):
    """The tests, measured: fails below 98.8 %, and lists what no test reaches."""
    install(session, "test,dev")
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report", "--precision=2", "--fail-under=98.8")


@nox.session
def lint(session):
    """Style, format, spelling and docstrings."""
    install(session, "dev,docs")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("codespell")
    session.run(
        "python", "-m", "numpydoc", "lint", *map(str, sorted(Path("skcontrast").rglob("*.py")))
    )


@nox.session
def types(session):
    """Annotations."""
    install(session, "dev")
    session.run("mypy")


@nox.session
def docs(session):
    """Doctests, and the documentation in docs/_build with warnings as errors."""
    install(session, "test,docs")
    pages = sorted(Path("docs").rglob("*.rst"))
    guide = [str(page) for page in pages if GENERATED.isdisjoint(page.parts)]
    doctests = ["--doctest-modules", "--doctest-glob=*.rst", "skcontrast", *guide]
    session.run("pytest", "-q", *doctests)
    session.run("sphinx-build", "-W", "--keep-going", "docs", "docs/_build")


@nox.session
def links(session):
    """All links of the documentation, also to other sites: needs the internet."""
    install(session, "docs")
    session.env["SKCONTRAST_DOCS_INTERSPHINX"] = "1"
    options = ["-D", "plot_gallery=0", "-b", "linkcheck"]
    session.run("sphinx-build", "-W", "--keep-going", *options, "docs", "docs/_build/links")


@nox.session
def benchmarks(session):
    """Speed against the stored figures, or one benchmark: nox -s benchmarks -- overhead --save."""
    install(session, "graphs")
    session.env["OMP_NUM_THREADS"] = "1"
    runs = [session.posargs] if session.posargs else [[name, "--compare"] for name in TIMED]
    for name, *options in runs:
        session.run("python", "-m", f"benchmarks.speed.{name}", *options)
