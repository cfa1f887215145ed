import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/**
 * Policies of a broker (KIP-108, KIP-133): topics may not set the configs that the broker's property refusals.configs lists, and topics
 * whose names end with -thick need three replicas. A jar with this class comes into the broker as a Java agent.
 */
public class Refusals implements CreateTopicPolicy, AlterConfigPolicy {
    private Set<String> refused = Set.of();

    public static void premain(String arguments) {
    }

    @Override
    public void configure(Map<String, ?> properties) {
        if (properties.get("refusals.configs") instanceof String names) {
            refused = new TreeSet<>(Arrays.asList(names.split(",")));
        }
    }

    @Override
    public void validate(CreateTopicPolicy.RequestMetadata topic) {
        check(topic.topic(), topic.configs());
        if (topic.topic().endsWith("-thick") && topic.replicationFactor() != 3) {
            throw new PolicyViolationException("a topic has 3 replicas, not " + topic.replicationFactor());
        }
    }

    @Override
    public void validate(AlterConfigPolicy.RequestMetadata change) {
        check(change.resource().name(), change.configs());
    }

    private void check(String topic, Map<String, String> configs) {
        if (topic.startsWith("__")) { // the broker's own
            return;
        }
        for (String name : new TreeSet<>(configs.keySet())) {
            if (refused.contains(name)) {
                throw new PolicyViolationException(name + " is not for you");
            }
        }
    }

    @Override
    public void close() {
    }
}
