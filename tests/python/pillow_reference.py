# SPDX-License-Identifier: Apache-2.0
"""Pillow's own pixels, made in whichever interpreter runs this: argv: jobs.json results.npz.

A job is {"path", "box": [left, top, right, bottom] or null, "size": [width, height], "filter", "flip"}.
"""

import json
import sys

import numpy as np
import PIL.Image


def result_of(job: dict) -> np.ndarray:
    image = PIL.Image.open(job["path"]).convert("RGB")
    if job["box"]:
        image = image.crop(job["box"])
    image = image.resize(job["size"], PIL.Image.Resampling[job["filter"]])
    if job["flip"]:
        image = image.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)
    return np.asarray(image)


with open(sys.argv[1]) as file:
    jobs = json.load(file)
np.savez(sys.argv[2], *[result_of(job) for job in jobs])
