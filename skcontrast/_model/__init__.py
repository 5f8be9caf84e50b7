"""What is fitted: settings, samples, defaults, views, and the model that embeds them."""
