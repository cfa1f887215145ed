import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.MessageFormatter;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.mirror.MirrorCheckpointConfig;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * Asks MirrorMaker 2's own Java classes. One question a line on stdin, fields separated by tabs, the first two its name and the properties
 * (key=value, separated by semicolons); one answer a line on stdout.
 */
public class Probe {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.split("\t", -1);
            answers.println(answer(words[0], properties(words[1]), words));
        }
    }

    private static String answer(String question, Map<String, Object> properties, String[] words) throws Exception {
        switch (question) {
            case "hops":
                return String.valueOf(RemoteClusterUtils.replicationHops(properties, words[2]));
            case "heartbeats":
                return sorted(RemoteClusterUtils.heartbeatTopics(properties));
            case "checkpoints":
                return sorted(RemoteClusterUtils.checkpointTopics(properties));
            case "upstream":
                return sorted(RemoteClusterUtils.upstreamClusters(properties));
            case "remote":
                try (MirrorClient client = new MirrorClient(properties)) {
                    return sorted(words.length > 2 ? client.remoteTopics(words[2]) : client.remoteTopics());
                }
            case "translate":
                return offsets(RemoteClusterUtils.translateOffsets(properties, words[2], words[3], TIMEOUT));
            case "translate-pattern":
                return new TreeMap<>(RemoteClusterUtils.translateOffsets(properties, words[2], Pattern.compile(words[3]), TIMEOUT))
                    .entrySet().stream().map(entry -> entry.getKey() + ":" + offsets(entry.getValue())).collect(Collectors.joining("|"));
            case "format":
                return formatted(properties, new TopicPartition(words[2], 0), words[3]);
            case "downstream":
                return downstream(properties, new TopicPartition(words[2], Integer.parseInt(words[3])), words[4]);
            default:
                throw new IllegalArgumentException(question);
        }
    }

    /** What OffsetSyncStore, by which MM2 translates, makes of upstream offsets; `none` where it knows no syncs. It is not public. */
    private static String downstream(Map<String, Object> properties, TopicPartition partition, String offsets) throws Exception {
        Class<?> store = Class.forName("org.apache.kafka.connect.mirror.OffsetSyncStore");
        Map<String, String> texts = new HashMap<>();
        properties.forEach((key, value) -> texts.put(key, (String) value));
        var constructor = store.getDeclaredConstructor(MirrorCheckpointConfig.class);
        constructor.setAccessible(true);
        var start = store.getMethod("start", boolean.class);
        var translate = store.getMethod("translateDownstream", String.class, TopicPartition.class, long.class);
        var close = store.getMethod("close");
        for (var method : new java.lang.reflect.Method[] {start, translate, close}) {
            method.setAccessible(true);
        }
        Object opened = constructor.newInstance(new MirrorCheckpointConfig(texts));
        try {
            start.invoke(opened, false);
            StringBuilder answer = new StringBuilder();
            for (String offset : offsets.split(",")) {
                OptionalLong found = (OptionalLong) translate.invoke(opened, "group", partition, Long.parseLong(offset));
                answer.append(answer.length() > 0 ? "," : "").append(found.isPresent() ? String.valueOf(found.getAsLong()) : "none");
            }
            return answer.toString();
        } finally {
            close.invoke(opened);
        }
    }

    /** Every record of a partition as Kafka's console consumer prints it with a formatter. */
    private static String formatted(Map<String, Object> properties, TopicPartition partition, String formatter) throws Exception {
        MessageFormatter printer = (MessageFormatter) Class.forName(formatter).getDeclaredConstructor().newInstance();
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(properties, bytes, bytes); var stream = new PrintStream(printed, true, "UTF-8")) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                consumer.poll(TIMEOUT).forEach(record -> printer.writeTo(record, stream));
            }
        }
        return printed.toString("UTF-8").strip().replace("\n", "|");
    }

    private static String offsets(Map<TopicPartition, OffsetAndMetadata> offsets) {
        return offsets.entrySet().stream()
            .map(entry -> entry.getKey() + "=" + entry.getValue().offset() + "/" + entry.getValue().metadata())
            .sorted().collect(Collectors.joining(","));
    }

    private static String sorted(Collection<String> names) {
        return String.join(",", new TreeSet<>(names));
    }

    private static Map<String, Object> properties(String text) {
        return Arrays.stream(text.split(";")).map(entry -> entry.split("=", 2))
            .collect(Collectors.toMap(entry -> entry[0], entry -> entry[1]));
    }
}
