#!/bin/bash
# kafka-mirror-maker.sh --help
export KAFKA_HEAP_OPTS="-Xmx1g"
/opt/kafka/bin/kafka-mirror-maker.sh --new.consumer \
  --consumer.config mm1/consumer.properties \
  --producer.config mm1/producer.properties \
  --num.streams 4 --whitelist '"orders|payments"' --queue.size 100 >> /var/log/mm.log 2>&1 &
