"""Write the tables of the pages from the figures in ``*/results/*.json``.

    python -m benchmarks.render

Each benchmark has a page ``results/NAME.md`` next to its figures, ``results/NAME.json``: what is
between the line ``<!-- table: TABLE -->`` and the next ``<!-- end -->`` is replaced by the table.
In the pages of the documentation, `DOCUMENTED`, the lines are ``.. table: NAME`` and ``.. end``,
and each table is made of one or several stored ones. README has one table, `five_labels`.
"""

from __future__ import annotations

import csv
import io
import re
from functools import partial
from pathlib import Path
from textwrap import indent

from benchmarks._results import cell, load, made_with, table_lines
from benchmarks.studies.five_labels import table_of as rows_of_five_labels

FOLDER = Path(__file__).parent
README = FOLDER.parent / "README.md"
MEASURED_PAGE = FOLDER.parent / "docs" / "measured.rst"
HELP_PAGE = FOLDER.parent / "docs" / "guide" / "do_debiased_losses_help.rst"
MARKDOWN = re.compile(r"(<!-- table: ([^\n]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
RST = re.compile(r"(^\.\. table: ([^\n]+)\n)(.*?)(^\.\. end$)", re.DOTALL | re.MULTILINE)
FIVE_LABELS = ("raw", "without training", "embedding", "classifier")
SETS = {
    "digits": "digits",
    "Fashion-MNIST": "Fashion-MNIST, 4,000",
    "CIFAR-10": "CIFAR-10, 5,000",
    "digits as vectors": "digits as vectors",
    "wine": "wine",
    "iris": "iris",
    "breast cancer": "breast cancer",
}


def pages():
    """Return the paths of all pages."""
    return [*sorted(FOLDER.glob("*/results/*.md")), *DOCUMENTED, README]


def rendered(path):
    """Return the text of a page with its tables as the stored figures have them."""
    text = path.read_text(encoding="utf-8")
    if path in DOCUMENTED:
        made = DOCUMENTED[path]
        return RST.sub(lambda m: f"{m[1]}{csv_table(*made[m[2]]())}\n{m[4]}", text)
    if path == README:
        return MARKDOWN.sub(lambda m: f"{m[1]}\n{five_labels()}\n\n{m[4]}", text)
    tables = load(path.with_suffix(".json"))
    return MARKDOWN.sub(lambda m: f"{m[1]}\n{markdown(tables[m[2]])}\n\n{m[4]}", text)


def markdown(table):
    """Return a stored table, and how it was made."""
    note = [table["note"], ""] if "note" in table else []
    return "\n".join([*table_lines(table), "", *note, f"*{made_with(table)}*"])


def five_labels():
    """Return accuracies with 5 labels per class, from unrounded means: the best are bold."""
    table = load(FOLDER / "studies/results/five_labels.json")["five labels"]
    rows = []
    for row in rows_of_five_labels():
        cells = {name: f"{row[name]['mean']:.2f}" for name in FIVE_LABELS}
        best = max(cells.values())
        cells = {name: f"**{text}**" if text == best else text for name, text in cells.items()}
        cells["without training"] += f" ({row['best of it']})"
        cells["CPU time"] = f"{60 * row['CPU min']:.0f} s"
        rows.append({"data": row["data"]} | cells)
    return "\n".join([*table_lines({"rows": rows, "digits": 2}), "", f"*{made_with(table)}*"])


def csv_table(rows, tables):
    """Return rows, dicts of text by column, as reStructuredText, titled by the tables' origin."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), restval="–", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    head = f".. csv-table:: {origin(tables)}\n   :header-rows: 1"
    return f"{head}\n\n{indent(out.getvalue().rstrip(), '   ')}"


def origin(tables):
    """Return when, from what and where tables were made, in a line."""
    machines = [table["machine"] for table in tables]
    parts = {
        "": [table["date"] for table in tables],
        "commit ": [table["commit"] for table in tables],
        "processor ": [machine["cpu"] for machine in machines],
        "threads ": [str(machine["threads"]) for machine in machines],
    }
    return "; ".join(word + ", ".join(dict.fromkeys(of)) for word, of in parts.items())


def stored(name, table):
    """Return a stored table, and its rows as dicts of text without standard deviations."""
    content = load(FOLDER / f"{name}.json")[table]
    digits = content["digits"]
    rows = [{k: short(value, digits) for k, value in row.items()} for row in content["rows"]]
    return content, [row | ({"p": "< .001"} if row.get("p") == "0.000" else {}) for row in rows]


def short(value, digits):
    """Return a figure as text, with at most 3 decimal places up to 1, 2 up to 10 and 1 above."""
    value = value["mean"] if isinstance(value, dict) else value
    size = abs(value) if isinstance(value, float) else 0
    return cell(value, min(digits, 3 if size <= 1 else 2 if size < 10 else 1))


def joined(name, tables, columns):
    """Return columns of several tables of a benchmark, one below the other, without `LEFT_OUT`.

    Parameters
    ----------
    name : str
        Folder and name of the benchmark.
    tables : dict of str to str
        Tables by the name that the first column gives them.
    columns : sequence of str
        Columns that are kept; the first one names the row.
    """
    found, contents = [], []
    for data, table in tables.items():
        content, rows = stored(name, table)
        contents.append(content)
        kept = (row for row in rows if row[columns[0]] not in LEFT_OUT)
        found += [{"data": data, **{name: row.get(name, "–") for name in columns}} for row in kept]
    return found, contents


def worth():
    """Return accuracies with few labels and with many, by data and representation.

    "95 %" is the interval of the first baseline less the embedding, with few labels. Where a
    stored table has what was "learned", its "default" and the weights at the start have features
    without training, too.
    """
    found, contents = [], []
    for data, (name, table, few, many) in WORTH.items():
        content, rows = stored(f"studies/results/{name}", table)
        contents.append(content)
        figures = {row["row"]: f"{row[few]}, {row[many]}" for row in rows if few in row}
        best = [best_without_training(rows, column) for column in (few, many)]
        named = (
            f"{row[column]} {row['row']}" for row, column in zip(best, (few, many), strict=True)
        )
        baselines = {"best unwhitened": ", ".join(named)}
        baselines["95 %"] = "–" if "learned" in figures else best[0].get("95 %", "–")
        if "learned" in figures:
            figures |= {
                "untrained": "–",
                "default": figures["learned"],
                JOINED[0]: figures["default"],
            }
        row = {title: figures.get(name, "–") for title, name in WORTH_COLUMNS.items()}
        row["concatenated"] = next((figures[name] for name in JOINED if name in figures), "–")
        found.append({"data": data, **baselines, **row})
    return found, contents


def best_without_training(rows, column):
    """Return the row of the training-free baseline with the highest figure."""
    free = (row for row in rows if row["row"] in TRAINING_FREE and column in row)
    return max(free, key=lambda row: float(row[column]))


def of_images(name, tables, titles):
    """Return accuracies with 5 labels and of neighbours, a row for each set of images.

    Parameters
    ----------
    name : str
        The study.
    tables : sequence of str
        Its tables.
    titles : dict of str to str
        The page's columns by rows of the tables.
    """
    found, contents = {}, []
    for table in tables:
        content, rows = stored(f"studies/results/{name}", table)
        contents.append(content)
        for row in rows:
            data = row.get("set", table.split(",")[0])
            named = {row.get(key) for key in ("columns", "row", "variant")}
            for title in (title for name, title in titles.items() if name in named):
                of_data = found.setdefault(data, {"data": data})
                figures = row["5 labels"], row.get("neighbours", "–")
                of_data[title] = ", ".join(figure for figure in figures if figure != "–")
    return list(found.values()), contents


def loss_engine():
    """Return the time of losses relative to plain NT-Xent, and their memory at B = 4,096."""
    time, rows = stored("speed/results/loss_engine", "time")
    peers, of_peers = stored("speed/results/loss_engine", "peers")
    memory, of_memory = stored("speed/results/loss_engine", "memory")
    mib = {row["loss"]: row["MiB"] for row in of_memory if row["B"] == "4,096"}
    columns = [column for column in rows[0] if not column.startswith("error")]
    rows += [row for row in of_peers if not row["loss"].startswith("plain")]
    rows = [{column: row.get(column, "–") for column in columns} for row in rows]
    for row in rows:
        row["MiB, B = 4096"] = mib.get(row["loss"], "–")
    return rows, [time, peers, memory]


def growth():
    """Return time and memory at the largest size of each axis of a fit."""
    content, rows = stored("speed/results/growth", "axes")
    fits = [row for row in rows if row["axis"] not in CALLS]
    return [row for row in fits if row["exponent of time"] != "–"], [content]


def paper_losses():
    """Return how far losses are from InfoNCE, by data; bold where the interval excludes 0."""
    path, found, contents = "studies/results/paper_losses", {}, []
    for k, data in enumerate(tables := load(FOLDER / f"{path}.json")):
        content, rows = stored(path, data)
        contents.append(content)
        for row in rows:
            if int(row["n"]) > 1:
                cells, n = found.setdefault(row["row"], ({}, ["–"] * len(tables)))
                cells[data] = "/".join(difference(row, c) for c in ("5 labels", "20-NN", "linear"))
                n[k] = row["n"]
    made = [
        {"loss": row, **{data: cells.get(data, "–") for data in tables}, "n": "/".join(n)}
        for row, (cells, n) in found.items()
    ]
    return made, contents


def difference(row, column):
    """Return a difference as text, or a reference's own figure."""
    if f"Δ {column}" not in row:
        return row[column]
    low, high = row[f"95 %, {column}"].split(" to ")
    text = row[f"Δ {column}"].replace("0.", ".")
    return f"**{text}**" if low[0] == high[0] else text  # both have a sign


def helps():
    """Return what gains more than a loss: accuracies without it and with it."""
    found, contents = [], []
    for what, data, name, table, before, after in HELPS:
        content, rows = stored(f"studies/results/{name}", table)
        contents.append(content)
        rows = [row for row in rows if row.get("data", data) == data]
        pair = [next(row for row in rows if one in row.values()) for one in (before, after)]
        row = {"what": what, "data": data}
        for title, column in (("few labels", "5 labels"), ("neighbours", "20-NN")):
            row[title] = " → ".join(of[column] for of in pair)
        found.append(row)
    return found, contents


WORTH_COLUMNS = {"whitened": "whitened", "untrained": "untrained", "embedding": "default"}
JOINED = ("blocks of equal weight", "default and whitened")
TRAINING_FREE = (
    *("raw", "standardised", "PCA", "UMAP", "HOG", "patches", "MiniRocket", "catch22"),
    *("size", "bag", "profile", "colours"),
)
# data: benchmark, table, and two columns
WORTH = {data: ("worth", table, "5 labels", "20-NN") for data, table in SETS.items()}
FEW_SAMPLES = ("digits, 250", "Fashion-MNIST, 1,000", "digits as vectors, 250", "ENZYMES, 250")
WORTH |= {table: ("worth", table, "5 labels", "20-NN") for table in FEW_SAMPLES}
WORTH["PTC_MR, 172"] = ("worth", "PTC_MR", "5 labels", "20-NN")
WORTH["five sets of series, 1,000"] = (
    "series",
    "mean of 5 sets, 1,000 series",
    "5 labels",
    "5-NN",
)
WORTH["nine sets of series"] = ("series", "mean of 9 sets, poolings", "5 labels", "5-NN")
GRAPH_SETS = ("PTC_MR", "ENZYMES", "molecules", "threads", "proteins", "DD", "REDDIT-BINARY")
WORTH |= {name: ("graph_worth", name, "10 labels", "SVM") for name in GRAPH_SETS}
CALLS = "transform", "score", "patches", "kernels", "colours"
PHOTOGRAPHS = {
    "frozen": "frozen network",
    "learned": "adapted or frozen",
    "logistic regression": "regression on the frozen network",
    "classifier": "ContrastiveClassifier",
}
UNSEEN = ("potato", "tiles", "signs", "weather", "rice", "brains")
PHOTOGRAPH_TABLES = ("classifiers", *(f"unseen, {name}" for name in UNSEEN))
SCRATCH = {
    "pixels, 24×24": "pixels",
    "patches": "patches",
    "whitened": "whitened",
    "learned": "embedding",
}
SCRATCH_TABLES = [
    f"{name}, 96{end}"
    for name in ("cells", "steel", "textures", "satellite")
    for end in ("", ", whitened")
]
# what, data, benchmark, table, the row without it and the row with it
HELPS = (
    (
        "brightness and contrast in views",
        "digits",
        "papers_axes",
        "light",
        "turns and shifts alone",
        "and light",
    ),
    ("training", "digits", "worth", "digits", "untrained", "default"),
    ("groups", "digits", "groups", "digits", "default", "groups, positive"),
    ("groups", "CIFAR-10, 2,500", "groups", "CIFAR-10, 2,500", "default", "groups, positive"),
)
LOSS_COLUMNS = ["row", "1 label", "5 labels", "20 labels", "20-NN", "linear", "95 %", "p", "n"]
PEER_COLUMNS = ["row", "CPU s", "CPU ratio", "5 labels", "20-NN", "linear", "95 %", "n"]
LEFT_OUT = [
    "raw",
    "untrained",
    "BCL, α .9, β τ⁺",  # by a slip: β was meant to be 0
]
LOSS_SETS = {
    "digits": "digits, temperature 0.2",
    "Fashion-MNIST": "Fashion-MNIST, 2,000, temperature 0.2",
}
PEER_SETS = {"digits": "digits", "Fashion-MNIST": "Fashion-MNIST, 2,000", "PTC_MR": "PTC_MR"}
MEASURED = {
    "worth": worth,
    "photographs": partial(
        of_images,
        "pretrained",
        [f"lite0, 224 pixels, {table}" for table in PHOTOGRAPH_TABLES],
        PHOTOGRAPHS,
    ),
    "images of 96 pixels": partial(of_images, "image_sizes", SCRATCH_TABLES, SCRATCH),
    "losses": partial(joined, "studies/results/worth", LOSS_SETS, LOSS_COLUMNS),
    "what helps": helps,
    "loss engine": loss_engine,
    "growth": growth,
    "peers": partial(joined, "speed/results/peers_end_to_end", PEER_SETS, PEER_COLUMNS),
}
HELP = {"paper losses": paper_losses}
DOCUMENTED = {MEASURED_PAGE: MEASURED, HELP_PAGE: HELP}


if __name__ == "__main__":
    for page in pages():
        page.write_text(rendered(page), encoding="utf-8")
