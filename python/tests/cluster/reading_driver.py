"""A driver that reads the table `accounts`: URI LEASE NAME=VALUE …, the settings of Spark."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

uri, lease, *settings = sys.argv[1:]
builder = SparkSession.builder
for setting in settings:
    name, _, value = setting.partition("=")
    builder = builder.config(name, value)
spark = builder.getOrCreate()
reader = spark.read.format("dray").option("url", uri).option("dbtable", "accounts")
accounts = reader.option("lease", lease).option("numPartitions", "4").load()
while True:
    accounts.write.format("noop").mode("overwrite").save()
