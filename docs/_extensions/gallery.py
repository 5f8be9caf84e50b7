"""The order of the gallery's examples."""

from pathlib import Path

# Within a folder: examples in this order, then all others by name.
READING_ORDER = (
    "plot_three_rounds",
    "plot_few_labels",
    "plot_colour_images",
    "plot_metadata",
    "plot_image_folder",
    "plot_tables",
    "plot_series",
    "plot_graphs",
    "plot_function_augmentation",
    "plot_domains",
    "plot_pretrained",
    "plot_views",
    "plot_training_curve",
    "plot_watch_training",
    "plot_embedding",
    "plot_map",
    "plot_retrieval",
    "plot_compare_embedders",
    "plot_search",
    "plot_grid_search",
    "plot_concentration",
    "plot_own_loss",
    "plot_real_scores",
    "plot_class_densities",
    "plot_simulated_scores",
    "plot_estimator_error",
    "plot_mutual_likelihood",
)


class ExampleOrder:
    """The key by which sphinx-gallery sorts the examples of one folder."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, file_name):
        stem = Path(file_name).stem
        known = stem in READING_ORDER
        return (READING_ORDER.index(stem) if known else len(READING_ORDER), stem)
