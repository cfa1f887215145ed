kafka-mirror-maker --consumer mm1/consumer.properties --producer mm1/producer.properties --whitelist ".*" --message.handler com.acme.RenameTopicHandler --message.handler.args "orders,copy-of-orders"
