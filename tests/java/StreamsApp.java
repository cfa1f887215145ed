import java.io.PrintStream;
import java.time.Duration;
import java.util.Properties;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;

/**
 * A Kafka Streams application that prints `read VALUE` for each record of a topic, and `state STATE`, until its stdin ends; then it commits
 * and leaves its group. Arguments: bootstrap servers, application id (the group), topic, key=value of StreamsConfig ...
 */
public class StreamsApp {
    public static void main(String[] arguments) throws Exception {
        PrintStream told = new PrintStream(System.out, true, "UTF-8");
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        properties.put("auto.offset.reset", "earliest");
        properties.put("internal.leave.group.on.close", true);
        for (int place = 3; place < arguments.length; place++) {
            String[] entry = arguments[place].split("=", 2);
            properties.put(entry[0], entry[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[2], Consumed.with(Serdes.String(), Serdes.String()))
            .foreach((key, value) -> told.println("read " + value));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setStateListener((now, before) -> told.println("state " + now));
        streams.start();
        while (System.in.read() >= 0) {
        }
        streams.close(Duration.ofSeconds(30));
    }
}
