"""A checkpoint is whole, belongs to one fit, and says so."""

import errno
import functools
import os

import numpy as np
import pytest
import torch
from safetensors.torch import save
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_score
from skorch.callbacks import EarlyStopping, Freezer, PrintLog
from torch import nn

import skcontrast
from skcontrast._fit import _checkpoint
from skcontrast._storage._file import pack, read_file
from skcontrast.augmentation import FunctionAugmentation, GaussianNoise
from skcontrast.encoders import MLP
from skcontrast.frameworks import MoCo
from skcontrast.losses import DCL, SupCon
from skcontrast.optimizers import Optimizer
from tests._fit.common import X, Y, evaluation
from tests.common import small

NAME = "from_epoch_0.safetensors"


def refused(folder, message, data=X, y=None, metadata=None, **params):
    """Check that a fit is refused by a message that names the file and says what to do."""
    with pytest.raises(ValueError, match=message) as info:
        small(checkpoint=folder, **params).fit(data, y, **(metadata or {}))
    assert str(folder / NAME) in str(info.value)
    assert "Pass a different folder as 'checkpoint', or delete the file" in str(info.value)


def opened(folder):
    """Return the content and the tensors of a checkpoint."""
    return read_file(folder / NAME, _checkpoint._HEADER)


@pytest.fixture
def finished(tmp_path):
    """Return the folder of a finished fit."""
    small(checkpoint=tmp_path).fit(X)
    return tmp_path


@pytest.mark.parametrize(
    "params, message",
    [
        ({"lr": 0.5}, "its parameter 'lr' was 0.001 and is 0.5 now"),
        ({"max_epochs": 3}, "'max_epochs' was 2 and is 3 now"),
        ({"encoder": MLP((8,))}, r"'encoder__widths' was \[16\] and is \[8\] now"),
        ({"loss": DCL()}, "'loss' was None and is skcontrast.losses._debiased.DCL now"),
        ({"augmentation": GaussianNoise()}, "'augmentation' was None and is a list of 1 now"),
        ({"optimizer": "sgd"}, "'optimizer' was 'adam' and is 'sgd' now"),
        ({"random_state": 1}, "its parameter 'random_state' was 0 and is 1 now"),
        (
            {"callbacks": [EarlyStopping("train_loss")]},
            "'callbacks' was \\[\\] and is a list of 1",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_fit_with_a_different_parameter_is_refused(finished, params, message):
    refused(finished, message, **params)


def test_parameters_inside_of_others_are_compared(tmp_path):
    small(loss=DCL(0.1), checkpoint=tmp_path).fit(X)
    refused(tmp_path, "'loss__tau_plus' was 0.1 and is 0.2 now", loss=DCL(0.2))


def test_parameters_that_do_not_change_the_fit_may_differ(finished):
    expected = small().fit_transform(X)
    indifferent = {
        "callbacks": [PrintLog(sink=str)],
        "memory_budget": 1.0,
        "n_workers": 1,
        "verbose": 1,
        "warm_start": True,
    }
    found = small(checkpoint=finished, **indifferent).fit(X)
    np.testing.assert_array_equal(found.transform(X), expected)
    found = small(checkpoint=finished, output="projection").fit(X)
    assert found.transform(X).shape[1] == 64


def test_one_different_number_is_a_different_X(finished):
    other = X.copy()
    other[37, 5] += 1
    refused(finished, "it was passed a different X", other)
    refused(finished, "it was passed a different X", X[:-1])
    refused(finished, "it was passed a different X", X.astype(np.float32))


def test_labels_weights_and_descriptions_are_compared(tmp_path):
    given = {"sample_weight": np.ones(90), "descriptions": np.ones((90, 64))}
    params = {"loss": SupCon(), "y": Y, "metadata": given}
    small(checkpoint=tmp_path, loss=SupCon()).fit(X, Y, **given)
    refused(tmp_path, "a different y", **{**params, "y": np.roll(Y, 1)})
    for name, array in given.items():
        for other in ({**given, name: 2 * array}, {k: v for k, v in given.items() if k != name}):
            refused(tmp_path, f"different {name}", **{**params, "metadata": other})


def test_a_seed_that_was_drawn_is_drawn_once(tmp_path):
    first = small(random_state=None, checkpoint=tmp_path).fit(X)
    again = small(random_state=None, checkpoint=tmp_path).fit(X)
    np.testing.assert_array_equal(again.transform(X), first.transform(X))
    assert not np.array_equal(small(random_state=None).fit_transform(X), first.transform(X))


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.999])
def test_a_truncated_file_is_refused(finished, share):
    path = finished / NAME
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refused(finished, "cannot be read: ")


def test_other_files_are_refused(finished):
    path = finished / NAME
    skcontrast.save(small().fit(X), path)
    refused(finished, "it was not written as a file of skcontrast checkpoint")
    path.write_bytes(save({}))
    refused(finished, "it was not written as a file of skcontrast checkpoint")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"identity": 5}, "cannot be read"),
        ({"state": {"$object": "losses.DCL", "state": {}}}, "names 'losses.DCL'"),
        ({"state": {"$custom": "os.system"}}, "cannot be read"),
        ({"state": {"module": {}}}, "does not fit this embedder"),
    ],
    ids=["identity", "object", "function", "state"],
)
def test_headers_that_are_later_or_hostile_are_refused(finished, change, message):
    path = finished / NAME
    content, tensors = opened(finished)
    path.write_bytes(pack({**content, **change}, tensors, _checkpoint._HEADER))
    refused(finished, message)


def test_learning_rates_that_are_texts_are_refused_before_the_training(finished):
    path = finished / NAME
    content, tensors = opened(finished)
    state = {**content["state"], "base_lr": ["a"]}
    changed = {**content, "finished": False, "state": state}
    path.write_bytes(pack(changed, tensors, _checkpoint._HEADER))
    refused(finished, "does not fit this embedder: its learning rates are not numbers")


def unfinished(folder, change):
    """Let a checkpoint be of a fit that has an epoch left, and change its content and tensors."""
    content, tensors = opened(folder)
    change(content["state"], tensors)
    changed = {**content, "finished": False}
    (folder / NAME).write_bytes(pack(changed, tensors, _checkpoint._HEADER))


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", torch.optim.RMSprop, "amsgrad"])
def test_a_state_of_the_optimizer_of_other_shapes_is_refused_before_the_training(
    optimizer, tmp_path
):
    if optimizer == "amsgrad":
        optimizer = Optimizer("adam", amsgrad=True)
    small(checkpoint=tmp_path, optimizer=optimizer).fit(X)
    _, tensors = opened(tmp_path)
    names = [name for name in tensors if ".optimizer." in name]
    entries = {name.rpartition(".")[2] for name in names} - {"step"}
    for entry in entries:
        name = next(name for name in names if name.endswith(f".{entry}"))
        changed = {**tensors, name: torch.zeros(1)}
        unfinished(tmp_path, lambda c, t, changed=changed: t.update(changed))
        refused(
            tmp_path,
            rf"its optimizer\.state\.\d\.{entry} is torch.float32 of shape \(1,\) instead of ",
            optimizer=optimizer,
        )
    unfinished(tmp_path, lambda c, t: t.update(tensors))
    assert small(checkpoint=tmp_path, optimizer=optimizer).fit(X).n_epochs_ == 2


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("state.optimizer.state.2.1.step", torch.tensor(1), r"state\.2\.step is torch.int64"),
        ("state.module.tensors.encoder.1.1.weight", torch.zeros(1), r"module\..*weight is "),
        ("state.session.tensors.queue.keys", torch.zeros(3), r"session\.queue\.keys is "),
        ("state.session.tensors.queue.rows", torch.zeros(50), r"session\.queue\.rows is .*float"),
    ],
)
def test_a_state_of_other_shapes_or_dtypes_is_refused_by_name(name, value, message, tmp_path):
    params = {"framework": MoCo(queue_size=50)}
    small(checkpoint=tmp_path, **params).fit(X)

    def change(state, tensors):
        (found,) = [key for key in tensors if key == name]
        tensors[found] = value

    unfinished(tmp_path, change)
    refused(tmp_path, message, **params)


def test_a_state_without_an_entry_of_the_optimizer_is_refused(finished):
    def change(state, tensors):
        pairs = state["optimizer"]["state"]["$pairs"]
        del pairs[0][1]["exp_avg"]

    unfinished(finished, change)
    refused(finished, r"it lacks optimizer\.state\.0\.exp_avg, torch.float32 of shape")


def test_a_file_without_a_tensor_of_the_optimizer_is_refused_by_name(finished):
    unfinished(finished, lambda state, tensors: tensors.pop("state.optimizer.state.2.1.exp_avg"))
    refused(finished, r"cannot be read: it lacks 'state\.optimizer\.state\.2\.1\.exp_avg'")


def test_a_state_of_a_parameter_that_the_optimizer_does_not_have_is_refused(finished):
    def change(state, tensors):
        pairs = state["optimizer"]["state"]["$pairs"]
        pairs.append([99, pairs[0][1]])

    unfinished(finished, change)
    refused(finished, r"its optimizer\.state\.99 is of no parameter")


def test_an_empty_name_is_not_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"must be a folder, got '': it is empty"):
        small(checkpoint="").fit(X)
    assert not any(tmp_path.iterdir())


def test_other_versions_are_a_warning(finished):
    path = finished / NAME
    content, tensors = opened(finished)
    content |= {"versions": {**content["versions"], "torch": "2.1"}, "finished": False}
    path.write_bytes(pack(content, tensors, _checkpoint._HEADER))
    with pytest.warns(UserWarning, match=r"'torch': '2\.1'.*last digits may differ"):
        small(checkpoint=finished).fit(X)


def test_a_checkpoint_is_not_an_embedder(finished):
    with pytest.raises(ValueError, match=r"it was not written as a file of skcontrast"):
        skcontrast.load(finished / NAME)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(ValueError, match=r"must be a folder, got .* it is a file"):
        small(checkpoint=path).fit(X)


@pytest.mark.parametrize(
    "name, message", [("a\0b", "has a NUL character"), ("~nosuchuser/a", "no user of that name")]
)
def test_a_name_that_no_folder_can_have_is_refused(name, message):
    with pytest.raises(ValueError, match=f"'checkpoint' parameter .* must be a folder.*{message}"):
        small(checkpoint=name).fit(X)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_place_of_the_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / NAME)
    refused(tmp_path, "is not a regular file")


def test_a_link_in_the_place_of_the_file_is_refused_and_its_target_kept(tmp_path):
    (tmp_path / "precious").write_text("keep me")
    for target in ("precious", "nowhere"):
        (tmp_path / NAME).symlink_to(tmp_path / target)
        refused(tmp_path, "is not a regular file")
        (tmp_path / NAME).unlink()
    assert (tmp_path / "precious").read_text() == "keep me"
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_cannot_be_written_is_refused_before_training(tmp_path, monkeypatch):
    def refuse(dir):
        raise PermissionError(errno.EACCES, "Permission denied", str(dir))

    monkeypatch.setattr(_checkpoint.tempfile, "TemporaryFile", refuse)
    embedder = small(checkpoint=tmp_path / "new")
    with pytest.raises(PermissionError, match=r"'checkpoint' cannot be written: .*new"):
        embedder.fit(X)
    assert not hasattr(embedder, "history_")


def test_a_full_disk_keeps_the_last_good_file(tmp_path, monkeypatch):
    calls = []

    def fills_up(descriptor):
        calls.append(descriptor)
        if len(calls) > 2:  # a file and its folder
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fills_up)
        with pytest.raises(OSError, match=NAME) as info:
            small(max_epochs=4, checkpoint=tmp_path).fit(X)
    assert info.value.errno == errno.ENOSPC
    assert sorted(os.listdir(tmp_path)) == [".lock", NAME]
    resumed = small(max_epochs=4, checkpoint=tmp_path).fit(X)
    np.testing.assert_array_equal(resumed.transform(X), small(max_epochs=4).fit_transform(X))


def test_parts_that_killed_fits_have_left_are_removed(tmp_path):
    (tmp_path / f".{NAME}.123.part").write_bytes(b"half")
    (tmp_path / "notes.txt").touch()
    small(checkpoint=tmp_path).fit(X)
    assert sorted(os.listdir(tmp_path)) == [".lock", NAME, "notes.txt"]


def test_partial_fit_ignores_the_folder(tmp_path):
    small(checkpoint=tmp_path / "new").partial_fit(X).partial_fit(X)
    assert not (tmp_path / "new").exists()


def test_a_second_fit_in_the_same_folder_at_the_same_time_is_refused(tmp_path):
    class FitsInside(EarlyStopping):
        def on_epoch_end(self, net, **kwargs):
            small(checkpoint=tmp_path).fit(X)

    with pytest.raises(ValueError, match=f"'checkpoint'.* another fit is using {tmp_path}"):
        small(checkpoint=tmp_path, callbacks=[FitsInside("train_loss")]).fit(X)
    assert small(checkpoint=tmp_path).fit(X).n_epochs_ == 2


def test_each_candidate_of_a_search_may_have_a_folder_of_its_own(tmp_path):
    embedder = small(checkpoint=tmp_path / "{fit}")
    search = GridSearchCV(embedder, {"lr": [1e-3, 1e-2]}, cv=2, error_score="raise").fit(X)
    assert len(list(tmp_path.iterdir())) == 5  # two candidates, two folds, and the refit
    again = GridSearchCV(embedder, {"lr": [1e-3, 1e-2]}, cv=2, error_score="raise").fit(X)
    np.testing.assert_array_equal(
        again.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )
    assert len(list(tmp_path.iterdir())) == 5


def test_a_search_over_seeds_has_a_folder_for_each(tmp_path):
    embedder = small(checkpoint=tmp_path / "{fit}")
    search = GridSearchCV(embedder, {"random_state": [0, 1]}, cv=2, error_score="raise").fit(X)
    assert len(list(tmp_path.iterdir())) == 5
    expected = small(**search.best_params_).fit_transform(X)
    np.testing.assert_array_equal(search.best_estimator_.transform(X), expected)


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 16), nn.ReLU())


def test_a_module_with_other_weights_is_refused(tmp_path):
    small(encoder=network(0), checkpoint=tmp_path).fit(X)
    small(encoder=network(0), checkpoint=tmp_path).fit(X)
    message = r"'encoder__weights' was tensors .* must be built after torch\.manual_seed"
    refused(tmp_path, message, encoder=network(1))


def test_a_search_over_modules_trains_each(tmp_path):
    networks = {"encoder": [network(0), network(1)]}
    GridSearchCV(small(checkpoint=tmp_path / "{fit}"), networks, cv=2, error_score="raise").fit(X)
    assert len(list(tmp_path.iterdir())) == 5


def scale(batch, factor):
    return batch * factor


def scaled(factor):
    return FunctionAugmentation(functools.partial(scale, factor=factor))


def test_an_augmentation_by_another_partial_is_refused(tmp_path):
    small(augmentation=scaled(0.5), checkpoint=tmp_path).fit(X)
    small(augmentation=scaled(0.5), checkpoint=tmp_path).fit(X)
    message = r"augmentation\[0\]__func\[1\]\['factor'\].* was 0\.5 and is 2\.0 now"
    refused(tmp_path, message, augmentation=scaled(2.0))


def is_epoch(k, net):
    return len(net.history) == k


@pytest.mark.parametrize(
    "make",
    [
        lambda k: EarlyStopping("train_loss", patience=k),
        lambda k: Freezer("encoder.*.weight", at=k),
        lambda k: evaluation(patience=k),
        lambda k: Freezer("encoder.*.weight", at=functools.partial(is_epoch, k)),
    ],
    ids=["early stopping", "freezer", "evaluation", "function"],
)
def test_a_callback_with_another_attribute_is_refused(make, tmp_path):
    used = make(1)
    small(callbacks=[used], checkpoint=tmp_path).fit(X)
    small(callbacks=[("name", used)], checkpoint=tmp_path).fit(X)
    small(callbacks=[make(1)], checkpoint=tmp_path).fit(X)
    refused(tmp_path, r"its parameter .callbacks\[0\]__", callbacks=[make(2)])


def test_folds_that_share_a_folder_are_refused(tmp_path):
    with pytest.raises(ValueError, match="it was passed a different X"):
        cross_val_score(small(checkpoint=tmp_path), X, cv=2, error_score="raise")


def test_an_optimizer_whose_state_cannot_be_written_is_named(tmp_path):
    class Odd(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            for parameter in self.param_groups[0]["params"]:
                self.state[parameter]["model"] = PCA()

    with pytest.raises(TypeError, match=r"'checkpoint' keeps numbers.*sklearn.*PCA"):
        small(optimizer=Odd, checkpoint=tmp_path).fit(X)
    assert small(optimizer=Odd).fit(X).n_epochs_ == 2
