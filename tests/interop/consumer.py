"""Reads envelopes without geoclaim's code:  consumer.py BROKERS TOPIC STORE W,S,E,N

Reads the topic to its end, discards by bbox and cover, fetches from STORE (a folder, or http://host:port/bucket/prefix), verifies,
and prints one JSON line an envelope. Any mismatch ends it with an error.
"""

import hashlib, json, re, sys, urllib.request, uuid

import cover
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

brokers, topic, store, area = sys.argv[1:5]
area = [float(number) for number in area.split(",")]


def planar(box):
    """West greater than east crosses the antimeridian: two boxes."""
    w, s, e, n = box
    return [(w, s, e, n)] if w <= e else [(w, s, 180.0, n), (-180.0, s, e, n)]


def meets(a, b):
    return any(p[0] <= q[2] and q[0] <= p[2] and p[1] <= q[3] and q[1] <= p[3] for p in planar(a) for q in planar(b))


def fetch(key):
    if store.startswith("http"):
        return urllib.request.urlopen(f"{store}/{key}", timeout=30).read()
    return open(f"{store}/{key}", "rb").read()


def resolve(envelope):
    if envelope.get("body_key") is None:
        return "inline", None
    digest = envelope["body_sha256"]
    assert re.fullmatch("[0-9a-f]{64}", digest) and envelope["body_key"] == f"geom/{digest[:2]}/{digest}.json", "hostile key"
    body = fetch(envelope["body_key"])
    assert len(body) == envelope["body_bytes"], "length"  # first the length, then the digest
    assert hashlib.sha256(body).hexdigest() == digest, "digest"
    json.loads(body)
    return "fetched", digest


consumer = Consumer({"bootstrap.servers": brokers, "group.id": str(uuid.uuid4()), "enable.partition.eof": True})
partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
ended = 0
while ended < len(partitions):
    record = consumer.poll(30)
    if record.error() is None:
        envelope = json.loads(record.value())
        placed = envelope.get("bbox") is not None and meets(envelope["bbox"], area)
        placed = placed and any(meets(piece, area) for piece in cover.boxes(envelope.get("cover"), envelope["bbox"]))
        outcome, digest = resolve(envelope) if placed else ("discarded", None)
        print(json.dumps({"feature_id": envelope["feature_id"], "event_id": envelope["event_id"], "outcome": outcome, "sha256": digest}))
    elif record.error().code() == KafkaError._PARTITION_EOF:
        ended += 1
    else:
        raise KafkaException(record.error())
consumer.close()
