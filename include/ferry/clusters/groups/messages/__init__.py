"""Messages of Kafka's protocol that kafka-python does not know. Each schema is a JSON file, in the form that kafka-python reads."""

from kafka.protocol.api_message import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json=__package__):  # type: ignore[call-arg, misc]
    """Describe groups of the protocol of KIP-848."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=__package__):  # type: ignore[call-arg, misc]
    """The groups, each with its own error code."""
