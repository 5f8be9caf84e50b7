"""Links to the documentation in HTML representations."""

import re
from pathlib import Path

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast import ContrastiveEmbedder, _documentation
from skcontrast.augmentation import GaussianNoise, RandomAffine
from skcontrast.encoders import MLP
from skcontrast.losses import DCL, InfoNCE
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine

PAGE = (Path(__file__).parents[1] / "docs" / "api.rst").read_text(encoding="utf-8")
OBJECTS = [
    ContrastiveEmbedder(),
    GaussianNoise(),
    RandomAffine(),
    InfoNCE(),
    DCL(),
    Cosine(),
    MLP(),
    Linear(0.0, 1.0),
]


def linked(estimator):
    return re.findall(r'href="(https://docs\.example/[^"]+)"', estimator._repr_html_())


@pytest.fixture
def base_url(monkeypatch):
    monkeypatch.setenv("SKCONTRAST_DOCS_URL", "https://docs.example/")


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: type(obj).__name__)
def test_an_object_links_to_the_page_that_the_api_lists(obj, base_url):
    page = linked(obj)[0].removeprefix("https://docs.example/generated/").removesuffix(".html")
    module, name = page.rsplit(".", 1)
    assert name == type(obj).__name__
    section = PAGE.split(f".. currentmodule:: {module}\n")[1].split(".. currentmodule::")[0]
    assert f"\n   {name}\n" in section


def test_a_pipeline_links_each_step_to_the_documentation_of_its_library(base_url):
    pipe = make_pipeline(StandardScaler(), GaussianNoise(), ContrastiveEmbedder())
    html = pipe._repr_html_()
    ours = [url.split("#")[0] for url in linked(pipe)]
    assert "https://docs.example/generated/skcontrast.augmentation.GaussianNoise.html" in ours
    assert "https://docs.example/generated/skcontrast.ContrastiveEmbedder.html" in ours
    assert "sklearn.preprocessing.StandardScaler.html" in html


def test_a_class_of_somebody_else_has_no_link(base_url):
    class Mine(InfoNCE):
        pass

    assert linked(Mine()) == []


def test_without_a_url_there_are_no_links(monkeypatch):
    monkeypatch.delenv("SKCONTRAST_DOCS_URL", raising=False)
    monkeypatch.setattr(_documentation, "_published_url", lambda: "")
    assert ContrastiveEmbedder()._get_doc_link() == ""


def test_the_installed_package_says_where_its_documentation_is(monkeypatch):
    class Metadata:
        def get_all(self, name):
            return ["Source, https://example.org", "Documentation, https://docs.example"]

    monkeypatch.delenv("SKCONTRAST_DOCS_URL", raising=False)
    monkeypatch.setattr(_documentation, "metadata", lambda name: Metadata())
    _documentation._published_url.cache_clear()
    try:
        assert linked(InfoNCE())[0].startswith("https://docs.example/generated/")
    finally:
        _documentation._published_url.cache_clear()
