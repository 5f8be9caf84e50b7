"""What a framework of the user returns is checked in the first steps of a fit."""

import numpy as np
import pytest
import torch

from skcontrast import frameworks
from skcontrast.losses import BCL, SINCERE, SupCon
from skcontrast.schedules import Auto
from skcontrast.similarity import Cosine, DotProduct
from tests.common import small
from tests.frameworks.common import X, Y


class Own(frameworks.Framework):
    """First views against second views; `change` takes the fields of the contrast."""

    n_views = 2

    def __init__(self, change=dict):
        self.change = change

    def contrast(self, network, views, similarity, batch):
        z = network(torch.cat(views)).float().unflatten(0, (2, -1))
        anchors, candidates = similarity.embed(z)
        known = batch.metadata(z[:1])
        fields = {
            "anchors": anchors,
            "candidates": candidates,
            "positives": similarity.pairs(anchors, candidates),
            "excluded": torch.arange(len(anchors)),
            "weights": known.weights,
            "anchor_labels": known.labels,
            "candidate_labels": batch.labels,
            "anchor_groups": known.groups,
            "candidate_groups": batch.groups,
        }
        return frameworks.Contrast(**self.change(**fields))


def without(*names):
    return lambda **fields: fields | dict.fromkeys(names)


def changed(name, function):
    return lambda **fields: fields | {name: function(fields.get(name))}


def fit(change=dict, y=None, similarity=None, loss=None, **metadata):
    embedder = small(framework=Own(change), similarity=similarity, loss=loss, batch_size=32)
    return embedder.fit(X, y, **metadata).history_[:, "train_loss"]


# Shapes


def test_one_positive_and_one_excluded_candidate_per_anchor_may_be_columns_or_not():
    expected = fit()
    for name in ("positives", "excluded"):
        assert fit(changed(name, lambda value: value[:, None])) == expected


N = "n_anchors = 2[56]"


@pytest.mark.parametrize(
    "name, function, message",
    [
        ("anchors", lambda u: u[0], r"shape \(n_anchors, k\).*, got torch.float32 of shape \(64,"),
        ("candidates", lambda u: u[:, :5], r"shape \(n_candidates = .*, k = 64\).* \(2[56], 5\)"),
        ("positives", lambda s: s[None], rf"shape \({N}, n_positives\).* \(1, 2[56]\)"),
        ("positives", lambda s: s.tolist(), "must be a tensor, floating or int64, .*, got list"),
        ("positives", lambda s: s[:, None][:, :0], "has no positives"),
        ("excluded", lambda rows: rows[:-1], rf"excluded .* shape \({N}"),
        ("excluded", lambda rows: rows.float(), "excluded .* must be a tensor, int64"),
        ("excluded", lambda rows: rows + 1, "excluded .* must be indices of its 2[56] candid"),
        ("excluded", lambda rows: rows[:, None].repeat(1, 2), "all different for an anchor"),
        ("excluded", lambda rows: rows.repeat(len(rows), 1), "excludes all candidates.*BYOL"),
        ("weights", lambda _: torch.ones(3), rf"weights .* shape \({N}\)"),
        ("anchor_labels", lambda _: torch.zeros(3).long(), rf"anchor_labels .* shape \({N}\)"),
        ("pair_weights", lambda _: torch.ones(3, 3), rf"pair_weights .* shape \({N}, n_cand"),
        ("candidate_groups", lambda _: torch.zeros(3).long(), "candidate_groups .* int64, of sha"),
    ],
)
def test_a_field_that_does_not_fit_is_refused_by_name(name, function, message):
    with pytest.raises(ValueError, match=message):
        fit(changed(name, function))


def of_pairs(weight):
    def weigh(**fields):
        shape = len(fields["anchors"]), len(fields["candidates"])
        return fields | {"pair_weights": torch.full(shape, weight)}

    return weigh


def far(name):
    def scale(**fields):
        own = torch.arange(len(fields["anchors"]))
        return fields | {name: 30 * fields[name], "positives": own, "excluded": own}

    return scale


OF_POSITIVES = "The positives of the Contrast of Own have "


@pytest.mark.parametrize(
    "change, kwargs, message",
    [
        (of_pairs(-1.0), {}, r"pair_weights .* must be at least 0"),
        (of_pairs(1.0), {"loss": SINCERE(), "y": Y}, r"rows\.scores takes no pair_weights"),
        (far("anchors"), {}, r"from similarity.embed, have .*Cosine.bounds"),
        (far("candidates"), {}, r"from similarity.embed, have .*Cosine.bounds"),
        (
            changed("positives", lambda s: 30 * s),
            {"similarity": Cosine()},
            OF_POSITIVES + r"a score of -?\d.*Cosine.bounds .* \[-2, 2\]",
        ),
        (
            changed("positives", lambda s: s * torch.nan),
            {"similarity": Cosine()},
            OF_POSITIVES + "a score of nan for finite vectors",
        ),
        (changed("positives", torch.Tensor.detach), {}, OF_POSITIVES + "no gradient"),
        (changed("candidates", lambda u: u[:0]), {}, "no candidates.*BYOL, SimSiam or VICReg"),
    ],
)
def test_what_cannot_be_contrasted_is_refused(change, kwargs, message):
    with pytest.raises(ValueError, match=message):
        fit(change, **kwargs)


def test_negative_or_trained_weights_are_refused():
    for weigh in (lambda u: -torch.ones(len(u)), lambda u: torch.ones(len(u), requires_grad=True)):
        message = r"weights .* must be at least 0 and have no gradient"
        with pytest.raises(ValueError, match=message):
            fit(lambda weigh=weigh, **fields: fields | {"weights": weigh(fields["anchors"])})


def test_a_contrast_takes_its_fields_by_name():
    with pytest.raises(TypeError, match="positional"):
        frameworks.Contrast(*torch.zeros(4, 2, 2))


# What the user has passed


@pytest.mark.parametrize(
    "missing, argument, kwargs",
    [
        (["weights"], "sample_weight", {"sample_weight": np.arange(101.0)}),
        (["weights"], "descriptions", {"descriptions": np.ones((101, 64))}),
        (["anchor_labels", "candidate_labels"], "y", {"y": Y, "loss": SupCon()}),
        (["candidate_labels"], "y", {"y": Y, "loss": BCL(alpha=Auto(every=1))}),
        (["anchor_groups", "candidate_groups"], "groups", {"groups": np.arange(101) // 2}),
        (["anchor_groups"], "groups", {"groups": np.arange(101) // 2}),
    ],
)
def test_a_framework_that_drops_what_is_known_about_the_samples_is_refused(
    missing, argument, kwargs
):
    message = f"Own passes no {' and no '.join(missing)} to Contrast.* fitted with {argument}"
    with pytest.raises(ValueError, match=message):
        fit(without(*missing), **kwargs)
    assert np.isfinite(fit(**kwargs)).all()


def test_labels_are_asked_for_only_where_the_loss_reads_them():
    assert fit(without("anchor_labels", "candidate_labels"), y=Y) == fit()


# What is contrasted


def test_vectors_of_any_length_are_embedded_where_the_similarity_leaves_them():
    assert np.isfinite(fit(similarity=DotProduct())).all()


# What a session returns, and what it holds


class Returns(frameworks.Framework):
    def __init__(self, returned):
        self.returned = returned

    def contrast(self, network, views, similarity, batch):
        return self.returned(network(views[0]))


@pytest.mark.parametrize(
    "returned, got",
    [
        (lambda z: z.square().mean(), "Tensor"),
        (lambda z: None, "NoneType"),
        (lambda z: [], "an empty list"),
        (lambda z: (z, z), "Tensor, Tensor"),
    ],
)
def test_anything_but_a_contrast_is_refused_with_what_a_framework_returns(returned, got):
    message = f"Returns must return a Contrast or a list of them, got {got}. A framework returns"
    with pytest.raises(TypeError, match=message):
        small(framework=Returns(returned)).fit(X)


class Starts(frameworks.Framework):
    def __init__(self, start_session):
        self.start_session = start_session

    def start(self, context):
        return self.start_session(context)


class Holds(frameworks.Session):
    def __init__(self, context, held):
        super().__init__(context)
        self.held = held


@pytest.mark.parametrize(
    "held", [lambda c: c.module, lambda c: torch.nn.ModuleList([c.module.encoder])]
)
def test_a_session_that_registers_the_network_is_refused(held):
    with pytest.raises(ValueError, match=r"Holds registers the network .*'held'.*call self"):
        small(framework=Starts(lambda context: Holds(context, held(context)))).fit(X)


def test_a_start_that_returns_no_session_is_refused():
    with pytest.raises(TypeError, match=r"Starts.start must return a .*Session, got NoneType"):
        small(framework=Starts(lambda context: None)).fit(X)


def test_the_second_step_is_checked_too_when_a_memory_has_filled():
    class Remembers(frameworks.Session):
        def __init__(self, context):
            super().__init__(context)
            self.slow = frameworks.MomentumNetwork(context, 0.9)
            self.queue = frameworks.KeyQueue(50, 1, context.width, context.n_samples)

        def contrast(self, views, similarity, batch):
            keys = self.slow(views[1])
            anchors = similarity.embed(self.context.network(views[0]).float())
            self.new = keys[:, None], batch.rows
            own, candidates = torch.arange(len(anchors)), similarity.embed(keys)
            positives = similarity.pairs(anchors, candidates)
            if len(self.queue):
                own, candidates = self.queue.excluded(batch.rows), self.queue.filled()[0]
            return frameworks.Contrast(
                anchors=anchors, candidates=candidates, positives=positives, excluded=own
            )

        def update(self):
            self.queue.push(*self.new)

    with pytest.raises(ValueError, match=r"candidates of .*similarity.embed"):
        small(framework=Starts(Remembers), batch_size=32).fit(X)


# Outside of a fit


@pytest.mark.parametrize(
    "framework",
    [
        *(frameworks.SimCLR(), frameworks.MoCo(), frameworks.MoCo(queue_size=16), Own()),
        Own(changed("correcting", lambda _: torch.zeros(12, 1))),
    ],
)
def test_a_framework_passes_on_made_vectors(framework):
    torch.manual_seed(0)
    frameworks.check_framework(framework)
    drawn = torch.rand(1)
    torch.manual_seed(0)
    assert drawn == torch.rand(1)


@pytest.mark.parametrize(
    "framework, error, message",
    [
        (Own(without("weights")), ValueError, "passes no weights to Contrast"),
        (Own(changed("excluded", lambda rows: rows + 1)), ValueError, "must be indices of"),
        (Returns(lambda z: z), TypeError, "must return a Contrast"),
        (Starts(lambda context: Holds(context, context.module)), ValueError, "registers the"),
        (frameworks.SimCLR, TypeError, "Write framework=SimCLR"),
        (frameworks.CMC(), ValueError, r"CMC\(\) needs a network"),
    ],
)
def test_a_framework_is_refused_outside_of_a_fit_too(framework, error, message):
    with pytest.raises(error, match=message):
        frameworks.check_framework(framework)
