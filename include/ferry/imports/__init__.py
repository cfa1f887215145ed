"""Makes one `mm2.properties` of the files of other tools: MirrorMaker 2's connectors, Strimzi's resources, MirrorMaker 1's command lines.

Knows `config`. Connects to no cluster, and looks no secret up.
Begin with `importing.py`.
"""
