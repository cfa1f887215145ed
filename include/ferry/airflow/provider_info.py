"""What Airflow's list of providers says about Ferry. The entry point `apache_airflow_provider` of the package names it."""

from typing import Any

from ferry import __version__


def get_provider_info() -> dict[str, Any]:
    """In the form of Airflow's provider_info.schema.json."""
    return {
        "package-name": "kafka-ferry",
        "name": "Ferry",
        "description": "Exactly-once Kafka cross-cluster replication as DAGs: they copy offset ranges by bounded Spark jobs.",
        "versions": [__version__],
        # Only the OpenLineage provider calls the converter. Airflow ignores an entry without the key `handler`.
        "asset-uris": [{"schemes": ["ferry"], "handler": None, "to_openlineage_converter": f"{__name__}.dataset_of_asset"}],
    }


def dataset_of_asset(asset: Any, lineage_context: object) -> Any:
    """As of lineage.py. Airflow imports the converter in every process that names an asset, and OpenLineage's client loads slowly."""
    from ferry.airflow import lineage  # noqa: PLC0415 - see above

    return lineage.dataset_of_asset(asset, lineage_context)
