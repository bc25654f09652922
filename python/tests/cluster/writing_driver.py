"""A driver that writes the table `written` once: URI NAME=VALUE …, the settings of Spark."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from written import write

uri, *settings = sys.argv[1:]
builder = SparkSession.builder
for setting in settings:
    name, _, value = setting.partition("=")
    builder = builder.config(name, value)
spark = builder.getOrCreate()
write(spark, uri)
spark.stop()
