"""Messages of Kafka's protocol that kafka-python does not know: their schemas, one JSON file a message, in the form that it reads."""

from kafka.protocol.api_message import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json=__package__):  # type: ignore[call-arg, misc]
    """Describe groups of the protocol of KIP-848."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=__package__):  # type: ignore[call-arg, misc]
    """The groups, each with its own error code."""
