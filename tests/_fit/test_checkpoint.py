"""A checkpoint belongs to one fit, says so, and is whole at every moment."""

import errno
import os

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_score
from skorch.callbacks import Callback, EarlyStopping
from torch import nn
from torch.utils.data import Dataset

from skcontrast.augmentation import GaussianNoise
from skcontrast.datasets import Modalities
from skcontrast.encoders import MLP
from skcontrast.frameworks import CMC
from skcontrast.losses import DCL, SupCon
from skcontrast.schedules import Linear
from tests._fit.common import X, Y
from tests.common import small

NAME = "from_epoch_0.pt"


def refused(folder, message, data=X, y=None, metadata=None, **params):
    """Check that a fit is refused by a message that names the file and says what to do."""
    with pytest.raises(ValueError, match=message) as info:
        small(checkpoint=folder, **params).fit(data, y, **(metadata or {}))
    assert str(folder / NAME) in str(info.value)
    assert "Pass a different folder as 'checkpoint', or delete the file" in str(info.value)


@pytest.fixture
def finished(tmp_path):
    """Return the folder of a finished fit."""
    small(checkpoint=tmp_path).fit(X)
    return tmp_path


# Which fit it belongs to


@pytest.mark.parametrize(
    "params, message",
    [
        ({"lr": 0.5}, "'lr' was 0.001 and is now 0.5"),
        ({"encoder": MLP((8,))}, r"'encoder' was MLP\(widths=\(16,\)\) and is now MLP\(w.*\(8"),
        ({"loss": DCL()}, r"'loss' was None and is now DCL\(\)"),
        ({"augmentation": GaussianNoise()}, r"'augmentation' was None and is now \[GaussianNoise"),
        ({"optimizer": "sgd"}, "'optimizer' was 'adam' and is now 'sgd'"),
        ({"random_state": 1}, "'random_state' was seed .* and is now seed .*"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_fit_with_a_different_parameter_is_refused(finished, params, message):
    refused(finished, f"belongs to another fit: {message}", **params)


def test_parameters_that_only_say_how_a_fit_runs_may_differ(finished):
    expected = small().fit_transform(X)
    indifferent = {
        "callbacks": [EarlyStopping("train_loss")],
        "memory_budget": 1.0,
        "n_workers": 1,
        "verbose": 1,
        "warm_start": True,
    }
    found = small(checkpoint=finished, **indifferent).fit(X)
    np.testing.assert_array_equal(found.transform(X), expected)
    assert small(checkpoint=finished, output="projection").fit_transform(X).shape[1] == 64


def test_other_samples_are_refused(finished):
    other = X.copy()
    other[37, 5] += 1
    for data in (other, X[:-1], X.astype(np.float32)):
        refused(finished, r"'X' was 90 samples with checksum \w{8} and is now \d\d samples", data)
    with pytest.raises(ValueError, match="'X' was 45 samples"):
        cross_val_score(small(checkpoint=finished / "cv"), X, cv=2, error_score="raise")


def test_labels_weights_and_descriptions_are_compared(tmp_path):
    given = {"sample_weight": np.ones(90), "descriptions": np.ones((90, 64))}
    params = {"loss": SupCon(), "y": Y, "metadata": given}
    small(checkpoint=tmp_path, loss=SupCon()).fit(X, Y, **given)
    refused(tmp_path, "'y' was", **{**params, "y": np.roll(Y, 1)})
    for name, array in given.items():
        for other in ({**given, name: 2 * array}, {k: v for k, v in given.items() if k != name}):
            refused(tmp_path, f"'{name}' was", **{**params, "metadata": other})


class Noisy(Dataset):
    """Returns another sample each time."""

    def __init__(self, n=60):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, row):
        return np.random.default_rng().normal(size=3)


def test_of_a_dataset_that_draws_its_samples_the_number_is_compared(tmp_path):
    small(checkpoint=tmp_path).fit(Noisy())
    assert small(checkpoint=tmp_path).fit(Noisy()).n_epochs_ == 2
    refused(tmp_path, "'X' was 60 samples", Noisy(50))
    parts = Modalities(np.ones((60, 2)) * np.arange(60)[:, None], Noisy())
    for _ in range(2):
        small(framework=CMC(), checkpoint=tmp_path / "parts").fit(parts)


def test_a_seed_that_was_drawn_is_drawn_once(tmp_path):
    first = small(random_state=None, checkpoint=tmp_path).fit(X)
    again = small(random_state=None, checkpoint=tmp_path).fit(X)
    np.testing.assert_array_equal(again.transform(X), first.transform(X))
    assert not np.array_equal(small(random_state=None).fit_transform(X), first.transform(X))


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 16), nn.ReLU())


def test_a_module_with_other_weights_is_refused(tmp_path):
    small(encoder=network(0), checkpoint=tmp_path).fit(X)
    small(encoder=network(0), checkpoint=tmp_path).fit(X)
    refused(tmp_path, "'encoder' was Sequential with checksum", encoder=network(1))


def test_a_fit_that_continues_from_a_different_embedder_is_refused(tmp_path):
    def continued(seed):
        embedder = small(random_state=seed, warm_start=True).fit(X)
        return embedder.set_params(random_state=0, checkpoint=tmp_path).fit(X)

    continued(1)
    with pytest.raises(ValueError, match=r"'the start' was .* with checksum"):
        continued(2)


@pytest.mark.parametrize(
    "grid",
    [{"random_state": [0, 1]}, pytest.param({"max_epochs": [1, 2]}, marks=pytest.mark.slow)],
    ids=str,
)
def test_each_candidate_of_a_search_may_have_a_folder_of_its_own(grid, tmp_path):
    embedder = small(checkpoint=tmp_path / "{fit}")
    for _ in range(2):
        search = GridSearchCV(embedder, grid, cv=2, error_score="raise").fit(X)
        assert len(list(tmp_path.iterdir())) == 5  # two candidates, two folds, and the refit
    expected = small(**search.best_params_).fit_transform(X)
    np.testing.assert_array_equal(search.best_estimator_.transform(X), expected)


# Further epochs


def test_a_longer_fit_continues_with_the_schedules_of_the_longer_one(tmp_path):
    params = {"loss": DCL(tau_plus=Linear(0.0, 0.2)), "checkpoint": tmp_path}
    first = small(max_epochs=2, **params).fit(X).history_
    longer = small(max_epochs=5, **params).fit(X).history_
    assert longer[:2, "train_loss"] == first[:, "train_loss"]
    np.testing.assert_allclose(longer[2:, "loss__tau_plus"], [0.1, 0.15, 0.2])
    rates = small(max_epochs=5).fit(X).history_[:, "lr"]
    np.testing.assert_allclose(longer[2:, "lr"], rates[2:])
    refused(tmp_path, "has 5 epochs, but 'max_epochs' is 4", max_epochs=4, loss=params["loss"])


def test_at_a_constant_rate_a_longer_fit_is_the_one_that_was_long_from_the_start(tmp_path):
    params = {"lr_schedule": "constant", "checkpoint": tmp_path}
    small(max_epochs=1, **params).fit(X)
    found = small(max_epochs=3, **params).fit(X)
    expected = small(max_epochs=3, lr_schedule="constant").fit_transform(X)
    np.testing.assert_array_equal(found.transform(X), expected)


def test_partial_fit_ignores_the_folder(tmp_path):
    small(checkpoint=tmp_path / "new").partial_fit(X).partial_fit(X)
    assert not (tmp_path / "new").exists()


# The file


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.999])
def test_a_truncated_file_is_refused(finished, share):
    path = finished / NAME
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refused(finished, "cannot be read: it is damaged")


class RunsCode:
    def __reduce__(self):
        return os.system, ("exit 1",)


@pytest.mark.parametrize("content", [RunsCode(), {"weights": torch.ones(3)}, [1, 2]])
def test_a_file_of_something_else_is_refused_and_runs_no_code(finished, content, monkeypatch):
    torch.save(content, finished / NAME)
    monkeypatch.setattr(os, "system", lambda command: pytest.fail("code was run"))
    refused(finished, "cannot be read: it is damaged")


def test_a_file_of_a_later_version_is_refused(finished):
    content = torch.load(finished / NAME, weights_only=True)
    torch.save({**content, "format": 99}, finished / NAME)
    refused(finished, "of another version of skcontrast")


def test_a_state_of_a_different_network_is_refused(finished):
    content = torch.load(finished / NAME, weights_only=True)
    del content["state"]["module"]["encoder.1.1.weight"]
    torch.save(content, finished / NAME)
    refused(finished, "does not fit this embedder")


def test_a_full_disk_keeps_the_last_good_file(tmp_path, monkeypatch):
    calls = []

    def fills_up(descriptor):
        calls.append(descriptor)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fills_up)
        with pytest.raises(OSError, match=NAME) as info:
            small(max_epochs=4, checkpoint=tmp_path).fit(X)
    assert info.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == [NAME]
    assert torch.load(tmp_path / NAME, weights_only=True)["state"]["n_epochs"] == 1
    resumed = small(max_epochs=4, checkpoint=tmp_path).fit(X)
    np.testing.assert_array_equal(resumed.transform(X), small(max_epochs=4).fit_transform(X))


def test_a_state_that_torch_would_not_load_is_named_after_the_first_epoch(tmp_path):
    class Odd(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            for parameter in self.param_groups[0]["params"]:
                self.state[parameter]["model"] = PCA()

    class Counts(Callback):
        def on_epoch_end(self, net, **kwargs):
            epochs.append(len(net.history))

    epochs = []
    with pytest.raises(TypeError, match=r"'checkpoint' keeps numbers.*sklearn.*PCA"):
        small(optimizer=Odd, callbacks=[Counts()], checkpoint=tmp_path).fit(X)
    assert epochs == [1] and not any(tmp_path.iterdir())
    assert small(optimizer=Odd).fit(X).n_epochs_ == 2


# The folder


@pytest.mark.parametrize(
    "name, error",
    [("a\0b", ValueError), ("~nosuchuser/a", RuntimeError), ("file", FileExistsError)],
)
def test_a_name_that_no_folder_can_have_is_refused(name, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(error):
        small(checkpoint=name).fit(X)
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_cannot_be_written_is_refused_before_training(tmp_path, monkeypatch):
    def refuse(dir):
        raise PermissionError(errno.EACCES, "Permission denied", str(dir))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    embedder = small(checkpoint=tmp_path / "new")
    with pytest.raises(PermissionError, match=r"Permission denied: .*new"):
        embedder.fit(X)
    assert not hasattr(embedder, "history_")
