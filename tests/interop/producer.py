"""Publishes envelopes as a stranger would: from the description of the wire, without geoclaim's code.

    producer.py BROKERS TOPIC STORE

Three kinds, an inline geometry, an inline Feature and a claim check whose body it writes to the folder STORE,
each once with every optional member absent and once with every one null, in different orders and with
members that no reader knows. None has a cover. Prints the event_ids, one a line, once all are acknowledged.
"""

import hashlib
import json
import math
import os
import sys
import uuid

from confluent_kafka import Producer

OPTIONAL = ("version", "cover", "geometry", "geojson", "body_key", "body_sha256", "body_bytes")

SQUARE = '{"type": "Polygon", "coordinates": [[[5.0, 51], [5.5, 51], [5.5, 51.50], [5.0, 51.50], [5.0, 51]]]}'
FEATURE = ('{ "properties":{"name":"Taveuni, \\u0046iji – côte est","at":null}, "type":"Feature",\n'
           '  "geometry":{"type":"LineString","coordinates":[[179.9,-16.8],[180.0,-16.9]]} }')


def circle(vertices):
    """Returns a ring around 139 east, 36 north, far above any inline limit."""
    turns = [2 * math.pi * (number % (vertices - 1)) / (vertices - 1) for number in range(vertices)]
    ring = [[139 + math.cos(turn), 36 + math.sin(turn)] for turn in turns]
    return json.dumps({"type": "Polygon", "coordinates": [ring]}).encode()


def put(store, body):
    """Writes a body under the key made of its own digest; it appears there whole or not at all."""
    digest = hashlib.sha256(body).hexdigest()
    key = f"geom/{digest[:2]}/{digest}.json"
    path = os.path.join(store, *key.split("/"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.{uuid.uuid4()}", "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)
    return {"body_key": key, "body_sha256": digest, "body_bytes": len(body)}


def encode(envelope, inline, turn):
    """Writes the members in an order turned by `turn`, an inline body as the very text it was given."""
    written = {name: json.dumps(value, ensure_ascii=False) for name, value in envelope.items()} | inline
    names = list(written)
    names = names[turn:] + names[:turn]
    colon, comma = (":", ",") if turn % 2 else (" : ", " ,\n  ")
    return ("{" + comma.join(f'"{name}"{colon}{written[name]}' for name in names) + "}").encode()


def main(brokers, topic, store):
    big = circle(20_001)
    kinds = (
        ("square", [5, 51, 5.5, 51.5], 5, {"geometry": SQUARE}, {}),
        ("taveuni", [179.9, -16.9, 180, -16.8], 2, {"geojson": FEATURE}, {}),
        ("circle", [138, 35, 140, 37], 20_001, {}, put(store, big)),
    )
    failures = []
    producer = Producer({"bootstrap.servers": brokers, "acks": "all", "enable.idempotence": True,
                         "message.timeout.ms": 30_000})
    event_ids = []
    for turn, (feature_id, bbox, vertices, inline, claim_check) in enumerate(kinds * 2, start=1):
        absent = turn <= len(kinds)
        envelope = {} if absent else dict.fromkeys(OPTIONAL)
        envelope |= {"event_id": str(uuid.uuid4()), "vertex_count": vertices, "crs": "EPSG:4326",
                     "x_source": {"by": "producer.py", "of": [1, None, "ü"]}, "bbox": bbox,
                     "occurred_at": "2026-01-02T03:04:05.678Z", "feature_id": feature_id} | claim_check
        event_ids.append(envelope["event_id"])
        producer.produce(topic, key=feature_id.encode(), value=encode(envelope, inline, turn),
                         on_delivery=lambda error, _: failures.append(error) if error else None)
    unsent = producer.flush(60)
    if unsent or failures:
        raise SystemExit(f"{unsent} unsent, failed: {failures}")
    print("\n".join(event_ids))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
