# SPDX-License-Identifier: Apache-2.0
"""Cutwater feeds training: it reads samples, runs the preprocessing, and hands out finished batches.

import cutwater as cw
ds = cw.folder("train").apply("imagenet-train")
for images, labels in cw.DataLoader(ds, batch_size=64, shuffle=True, seed=7):
    ...
"""

from cutwater._core import Pipeline, parse
from cutwater._core import version as __version__
from cutwater.batch import Batch
from cutwater.caching import Cache, cache
from cutwater.dataset import Dataset, files, folder, memory, tar
from cutwater.errors import (
    Closed,
    Error,
    InputOutputError,
    InternalError,
    InvalidArgument,
    NotFound,
    OutOfRange,
    SampleError,
    StaleStore,
    Timeout,
    Unavailable,
    WrongType,
)
from cutwater.loader import DataLoader
from cutwater.planning import Plan, plan
from cutwater.profiling import Profile, profile
from cutwater.remotes import remote
from cutwater.stores import materialize, store

__all__ = [
    "Batch",
    "Cache",
    "Closed",
    "DataLoader",
    "Dataset",
    "Error",
    "InputOutputError",
    "InternalError",
    "InvalidArgument",
    "NotFound",
    "OutOfRange",
    "Pipeline",
    "Plan",
    "Profile",
    "SampleError",
    "StaleStore",
    "Timeout",
    "Unavailable",
    "WrongType",
    "__version__",
    "cache",
    "files",
    "folder",
    "materialize",
    "memory",
    "parse",
    "plan",
    "profile",
    "remote",
    "store",
    "tar",
]
