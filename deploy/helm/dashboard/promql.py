"""Expressions that the dashboard and the alert rules share. `of`: label matchers in braces, or "" for every release."""


def quantile(q: float, histogram: str, window: str, *, of: str = "", by: str = "") -> str:
    """The q-quantile of what a histogram observed within `window`, for each value of the labels `by`."""
    labels = ", ".join(filter(None, ("le", by)))
    return f"histogram_quantile({q}, sum by ({labels}) (rate({histogram}_bucket{of}[{window}])))"


def mean(histogram: str, window: str, *, of: str = "", by: str = "") -> str:
    """The mean of what a histogram observed within `window`; nothing where it observed nothing."""
    total, count = (f"sum by ({by}) (rate({histogram}_{part}{of}[{window}]))" for part in ("sum", "count"))
    return f"{total}\n/ ({count} > 0)"


def parked_share(window: str, *, of: str = "") -> str:
    """Share of the streams that a full rollout queue held back, 0 without streams."""
    parked, streams = (f"avg_over_time(kubebeast_{name}{of}[{window}])" for name in ("streams_parked", "streams"))
    return f"{parked} / clamp_min({streams}, 1)"
