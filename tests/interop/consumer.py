"""Reads envelopes as a stranger would: from the description of the wire, without geoclaim's code.

    consumer.py BROKERS TOPIC STORE W,S,E,N

Reads the topic from its beginning to where it ends now, discards by bbox, resolves the rest, and prints one
JSON line an envelope. STORE is a folder, or http://host:port/bucket[/prefix] that asks for no credentials.
Exits with 1, after the last record, when any record is not what the wire promises.
"""

import hashlib
import json
import os
import re
import sys
import urllib.request
import uuid

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

LONGEST_BODY = 1 << 30
SPACE = re.compile(r"[ \t\r\n]*")


def members(text):
    """Splits an object into name: (value, source), for an inline body counts byte for byte."""
    found, decoder = {}, json.JSONDecoder()
    at = SPACE.match(text, text.index("{") + 1).end()
    while text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        start = SPACE.match(text, SPACE.match(text, at).end() + 1).end()  # behind the colon
        value, at = decoder.raw_decode(text, start)
        found[name] = (value, text[start:at])
        at = SPACE.match(text, at).end()
        if text[at] == ",":
            at = SPACE.match(text, at + 1).end()
    return found


def meets(a, b):
    """Tells whether two boxes touch; west > east crosses the antimeridian, and -180 is 180."""
    if a[1] > b[3] or b[1] > a[3]:
        return False
    a_east = a[2] if a[0] <= a[2] else a[2] + 360
    b_east = b[2] if b[0] <= b[2] else b[2] + 360
    return any(a[0] <= b_east + turn and b[0] + turn <= a_east for turn in (-360, 0, 360))


def fetch(store, key, length):
    """Returns the stored bytes, and never more than one beyond the declared length."""
    if store.startswith(("http://", "https://")):
        with urllib.request.urlopen(f"{store.rstrip('/')}/{key}", timeout=30) as reply:
            return reply.read(length + 1)
    with open(os.path.join(store, *key.split("/")), "rb") as file:
        return file.read(length + 1)


def resolve(envelope, sources, store):
    """Returns how the body came and its digest, or raises ValueError."""
    digest, length = envelope.get("body_sha256"), envelope.get("body_bytes")
    inline = [name for name in ("geometry", "geojson") if envelope.get(name) is not None]
    if inline and envelope.get("body_key") is None:
        if len(inline) > 1:
            raise ValueError("two inline bodies")
        return "inline", hashlib.sha256(sources[inline[0]].encode()).hexdigest()
    if inline or not re.fullmatch("[0-9a-f]{64}", digest or "") or not 0 <= length <= LONGEST_BODY:
        raise ValueError("neither one inline body nor one claim check")
    if envelope["body_key"] != f"geom/{digest[:2]}/{digest}.json":
        raise ValueError(f"{envelope['body_key']} is not the key of {digest}")
    body = fetch(store, envelope["body_key"], length)
    if len(body) != length:
        raise ValueError(f"{len(body)} bytes or more, {length} declared")
    if hashlib.sha256(body).hexdigest() != digest:
        raise ValueError(f"the digest is not {digest}")
    return "fetched", digest


def read(record, area, store):
    """Returns the line that says what became of one record."""
    text = (record.value() or b"").decode()
    envelope = json.loads(text)
    if not isinstance(envelope, dict):
        raise ValueError("not an object")
    sources = {name: source for name, (_, source) in members(text).items()}
    if (record.key() or b"").decode() != envelope["feature_id"]:
        raise ValueError("the record's key is not the feature_id")
    for name in ("event_id", "occurred_at", "crs"):
        if not isinstance(envelope.get(name), str):
            raise ValueError(f"no {name}")
    outcome, digest = "discarded", None
    if envelope.get("bbox") is not None and meets(envelope["bbox"], area):  # without a place: nowhere
        outcome, digest = resolve(envelope, sources, store)
    return {"feature_id": envelope["feature_id"], "event_id": envelope["event_id"], "outcome": outcome, "sha256": digest}


def records(brokers, topic):
    """Yields every record of the topic up to its end, partition by partition as they come."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": f"interop-{uuid.uuid4()}",
                         "enable.auto.commit": False, "enable.partition.eof": True})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    if not partitions:
        raise SystemExit(f"no topic {topic}")
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    open_partitions = set(partitions)
    while open_partitions:
        record = consumer.poll(30)
        if record is None:
            raise SystemExit("the broker is silent")
        if record.error() is None:
            yield record
        elif record.error().code() == KafkaError._PARTITION_EOF:
            open_partitions.discard(record.partition())
        else:
            raise KafkaException(record.error())
    consumer.close()


def main(brokers, topic, store, area):
    area, wrong = [float(number) for number in area.split(",")], 0
    for record in records(brokers, topic):
        try:
            print(json.dumps(read(record, area, store)), flush=True)
        except (ValueError, KeyError, TypeError, OSError) as error:
            wrong += 1
            print(f"{topic}/{record.partition()}@{record.offset()}: {error!r}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    sys.exit(main(*sys.argv[1:]))
