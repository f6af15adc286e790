"""The source that the setting node_notice names."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from kubebeast_learner.notices.clouds import AwsNotices, AzureNotices, GcpNotices
from kubebeast_learner.notices.notice import NoticeSource
from kubebeast_learner.notices.places import FileNotices, UrlNotices

CLOUDS: Mapping[str, Callable[[], NoticeSource]] = {
    "aws": AwsNotices,
    "aws-rebalance": partial(AwsNotices, with_rebalance=True),
    "azure": AzureNotices,
    "gcp": GcpNotices,
}


def source_of(node_notice: str) -> NoticeSource:
    """Returns the source for the value of the setting, which is not empty: a cloud, a URL or a path."""
    if node_notice in CLOUDS:
        return CLOUDS[node_notice]()
    return UrlNotices(node_notice) if "://" in node_notice else FileNotices(Path(node_notice).expanduser().absolute())
