"""The bill of materials of a release (CycloneDX): what its files hold, and what pip installs with them, in the locked versions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from tools.release.licences import ALWAYS, EXECUTORS, FERRY, WHEEL, Piece, parts

# Properties of a component: in which file it is, or which extra of the package installs it.
IN_FILE = {WHEEL: "wheel, sdist", EXECUTORS: "archive of the executors"}


def sbom(made: int) -> str:
    """The document. `made`: when, in seconds since the epoch."""
    found = parts()
    places: dict[Piece, list[Property]] = {}
    for part, pieces in found.items():
        kind, place = ("ferry:in", IN_FILE[part]) if part in IN_FILE else ("ferry:needed", part)
        for piece in pieces:
            places.setdefault(piece, []).append(Property(name=kind, value=place))
    del places[FERRY]
    locked = [piece for piece in places if piece.version]
    needed = {*found[WHEEL], *found[EXECUTORS], *found[ALWAYS]}

    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"{FERRY.name} {FERRY.version} {made}"))
    bom.metadata.timestamp = datetime.fromtimestamp(made, UTC)
    bom.metadata.component = ferry = _component(FERRY, "pypi", ComponentType.APPLICATION)
    components = {piece.name: _component(piece, "npm" if piece in found[WHEEL] else "pypi") for piece in locked}
    for piece in locked:
        component = components[piece.name]
        component.scope = ComponentScope.REQUIRED if piece in needed else ComponentScope.OPTIONAL
        component.properties = places[piece]
        bom.components.add(component)
        bom.register_dependency(component, _named(piece.requires, components))
    bom.register_dependency(ferry, _named((piece.name for piece in (*found[WHEEL], *found[ALWAYS])), components))
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)


def _component(piece: Piece, kind: str, form: ComponentType = ComponentType.LIBRARY) -> Component:
    purl = PackageURL(kind, None, piece.name, piece.version)
    return Component(
        name=piece.name,
        version=piece.version,
        type=form,
        purl=purl,
        bom_ref=str(purl),
        licenses=[LicenseFactory().make_from_string(piece.licence)],
        components=[
            Component(
                name=inner.name,
                version=inner.version or None,
                bom_ref=f"{purl}#{inner.name}@{inner.version}",
                licenses=[LicenseFactory().make_from_string(inner.licence)],
            )
            for inner in piece.inside
        ],
    )


def _named(names: Iterable[str], components: dict[str, Component]) -> list[Component]:
    return [components[name] for name in names if name in components]
