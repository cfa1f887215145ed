"""One file of Maven Central, such as a test jar or an archive, downloaded by the Ivy that PySpark brings.

Ivy compares it with the checksum that is published beside it. Whoever calls holds the lock of the cache, as for Kafka's jars.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ferry.cache import cache_directory
from ferry.sandbox.jars import Coordinate, JarsMissing, ivy_jar, java

_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="ferry" module="artifact"/>
  <dependencies>
    <dependency org={group} name={name} rev={version} transitive="false">
      <artifact name={name} type={extension} ext={extension} m:classifier={classifier}/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def retrieve(coordinate: Coordinate, classifier: str, extension: str, directory: Path) -> Path:
    """Put the file into a directory. JarsMissing."""
    group, name, version = coordinate
    target = directory / f"{name}-{version}-{classifier}.{extension}"
    fields = {"group": group, "name": name, "version": version, "classifier": classifier, "extension": extension}
    with tempfile.TemporaryDirectory() as scratch:
        module = Path(scratch) / "ivy.xml"
        module.write_text(_MODULE.format(**{key: quoteattr(value) for key, value in fields.items()}))
        command = [java(), "-jar", str(ivy_jar()), "-cache", str(cache_directory() / "ivy"), "-ivy", str(module), "-confs", "default"]
        command += ["-retrieve", f"{directory}/[artifact]-[revision](-[classifier]).[ext]"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if not target.is_file():
        raise JarsMissing(f"{target.name} could not be downloaded: check the network; Ivy said:\n{done.stdout[-2000:]}")
    return target
