#!/usr/bin/env bash
# `source.cluster.alias =` (without a value) in an mm2.properties that names its clusters.
#
# One would guess: an empty value says nothing, and MirrorMaker fills the alias in from `clusters`, as it does when the key is missing.
#
# What happens (connect-mirror 4.3.1): the key is there, so it is kept (Map.putIfAbsent). The connector's config takes the empty alias
# without a complaint, and the default policy gives remote topics names that begin with the separator: `.orders` instead of `A.orders`.
# Such names are internal topics to the same policy, which no MirrorMaker copies on.
#
# Who is hurt: who leaves a key of a template empty, and who writes a reader of mm2.properties that treats an empty value as a missing one.
#
# Needs bash, Java 17, Maven. Exits 0 while this is so, 1 once it has changed.
set -euo pipefail

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

cat > "$directory/pom.xml" <<'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-mirror</artifactId><version>4.3.1</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
(cd "$directory" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$directory/jars")

cat > "$directory/Finding.java" <<'JAVA'
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.MirrorMakerConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;
import org.apache.kafka.connect.mirror.SourceAndTarget;

public class Finding {
    static String alias(Map<String, String> more) {
        Map<String, String> file = new HashMap<>(Map.of("clusters", "A, B", "A->B.enabled", "true",
            "A.bootstrap.servers", "a:9092", "B.bootstrap.servers", "b:9092"));
        file.putAll(more);
        var base = new MirrorMakerConfig(file).connectorBaseConfig(new SourceAndTarget("A", "B"), MirrorSourceConnector.class);
        return new MirrorSourceConfig(base).getString("source.cluster.alias");
    }

    public static void main(String[] arguments) {
        String missing = alias(Map.of()), empty = alias(Map.of("source.cluster.alias", ""));
        var policy = new DefaultReplicationPolicy();
        policy.configure(Map.of());
        String topic = policy.formatRemoteTopic(empty, "orders");
        System.out.println("alias without the key: '" + missing + "', with an empty one: '" + empty + "'");
        System.out.println("remote topic of orders: " + topic + ", internal: " + policy.isInternalTopic(topic));
        boolean same = missing.equals("A") && empty.isEmpty() && topic.equals(".orders") && policy.isInternalTopic(topic);
        System.out.println(same ? "as found" : "this has changed");
        System.exit(same ? 0 : 1);
    }
}
JAVA
java -cp "$directory/jars/*" "$directory/Finding.java"
