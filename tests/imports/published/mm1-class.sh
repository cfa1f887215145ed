bin/kafka-run-class.sh kafka.tools.MirrorMaker --consumer.config=mm1/consumer.properties --producer.config=mm1/producer.properties --blacklist "secret.*" --abort.on.send.failure false
