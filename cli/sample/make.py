#!/usr/bin/env python3
"""Make features.geojson and areas.geojson beside this script.

    npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz
    python3 make.py package/countries-10m.json

Standard library only, and the same bytes every time.
"""

import hashlib
import json
import math
import pathlib
import sys

SOURCE_SHA256 = "3bc6f1d367a9bcec479841bae0e76092f512838411d0cef124e92eec4db45f79"
INLINE_LIMIT = 262_144
SIZE_LIMIT = 3_000_000

# The source is quantised to steps of 0.0036 by 0.0017 degrees. Four decimals keep every step apart;
# a fifth would only add bytes.
DECIMALS = 4
UNIT = 10**DECIMALS
HALF_TURN = 180 * UNIT

# For untangling, in units and in twice square units: the grid on which edges look for each other,
# and how small a folded loop must be to be dropped (half a thousandth of a square degree).
CELL = UNIT // 10
CRUMB = UNIT * UNIT // 1000

# ISO 3166-1 alpha-3 and numeric. Six are large, the rest is the long tail.
COUNTRIES = """
AUS 036  CHL 152  GRL 304  IDN 360  NOR 578  RUS 643
ABW 533  AIA 660  AND 020  ASM 016  ATG 028  BHR 048  BLM 652  BMU 060  BRB 052  BRN 096
COK 184  COM 174  CPV 132  CUW 531  CYM 136  DJI 262  DMA 212  FJI 242  FRO 234  GGY 831
GIB 292  GMB 270  GRD 308  GUM 316  IMN 833  IOT 086  ISL 352  JAM 388  JEY 832  KIR 296
KNA 659  KWT 414  LBN 422  LCA 662  LIE 438  LKA 144  LUX 442  MCO 492  MHL 584  MLT 470
MNP 580  MSR 500  MUS 480  NIU 570  NLD 528  NRU 520  NZL 554  PCN 612  PLW 585  PRI 630
QAT 634  SGP 702  SMR 674  STP 678  SWZ 748  SYC 690  TCA 796  TLS 626  TON 776  TTO 780
TUV 798  UMI 581  URY 858  VCT 670  VGB 092  VUT 548  WLF 876  WSM 882
"""


def number(units):
    """A coordinate as short as it can be, from whole units of its last decimal."""
    whole, rest = divmod(abs(units), UNIT)
    text = f"{whole}.{rest:0{DECIMALS}d}".rstrip("0").rstrip(".")
    return "-" + text if units < 0 else text


def signed_area(ring):
    """Twice the area, positive when counterclockwise; the ring is a list of points without the closing one."""
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, ring[1:] + ring[:1]))


def tidy(ring):
    """Without repeated points and without spikes that go out and come back the same way."""
    points = []
    for point in ring:
        if points and points[-1] == point:
            continue
        if len(points) > 1 and points[-2] == point:
            points.pop()
            continue
        points.append(point)
    while len(points) > 1 and points[0] == points[-1]:
        points.pop()
    while len(points) > 2 and points[1] == points[-1]:
        points = points[1:-1]
    return points


def turn(a, b, c):
    value = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    return (value > 0) - (value < 0)


def between(a, b, c):
    return min(a[0], b[0]) <= c[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= c[1] <= max(a[1], b[1])


def meet(a, b, c, d):
    one, two, three, four = turn(a, b, c), turn(a, b, d), turn(c, d, a), turn(c, d, b)
    if one != two and three != four:
        return True
    return (
        (one == 0 and between(a, b, c)) or (two == 0 and between(a, b, d))
        or (three == 0 and between(c, d, a)) or (four == 0 and between(c, d, b))
    )


def first_contact(ring):
    """The places (i, j) of two edges that are not neighbours and yet meet, or None."""
    cells = {}
    count = len(ring)
    for j in range(count):
        c, d = ring[j], ring[(j + 1) % count]
        for x in range(min(c[0], d[0]) // CELL, max(c[0], d[0]) // CELL + 1):
            for y in range(min(c[1], d[1]) // CELL, max(c[1], d[1]) // CELL + 1):
                seen = cells.setdefault((x, y), [])
                for i in seen:
                    if j - i > 1 and not (i == 0 and j == count - 1) and meet(ring[i], ring[i + 1], c, d):
                        return i, j
                seen.append(j)
    return None


def untangle(ring):
    """Part a ring where it meets itself: quantising folded a few over. The largest loop stays, crumbs beside it go."""
    waiting, loops = [ring], []
    while waiting:
        loop = tidy(waiting.pop())
        if len(loop) < 3 or signed_area(loop) == 0:
            continue
        contact = first_contact(loop)
        if contact is None:
            loops.append(loop)
        else:
            i, j = contact
            waiting += [loop[i + 1:j + 1], loop[j + 1:] + loop[:i + 1]]
    loops.sort(key=lambda loop: -abs(signed_area(loop)))
    return loops[:1] + [loop for loop in loops[1:] if abs(signed_area(loop)) >= CRUMB]


def cut(ring):
    """Part a ring at the antimeridian, as RFC 7946 wants it; the source runs across."""
    unwrapped, shift = [], 0
    for place, (x, y) in enumerate(ring):
        if place and abs(x - ring[place - 1][0]) > HALF_TURN:
            shift += 2 * HALF_TURN if x < ring[place - 1][0] else -2 * HALF_TURN
        unwrapped.append((x + shift, y))
    ring = tidy(unwrapped)
    if not ring:
        return []
    low, high = min(x for x, _ in ring), max(x for x, _ in ring)
    if high > HALF_TURN:
        line = HALF_TURN
    elif low < -HALF_TURN:
        line = -HALF_TURN
    else:
        return [ring]

    # Follow the ring and collect the chains on either side of the line; each starts and ends on it.
    chains, chain = [], []
    for a, b in zip(ring, ring[1:] + ring[:1]):
        chain.append(a)
        if (a[0] >= line) != (b[0] >= line):
            y = a[1] + round((b[1] - a[1]) * (line - a[0]) / (b[0] - a[0]))
            chain.append((line, y))
            chains.append(chain)
            chain = [(line, y)]
    if not chains:
        chains, chain = [chain], []
    else:
        chains[0] = chain + chains[0]

    # Along the line, inside and outside alternate: neighbours in pairs bound what is inside.
    pieces = []
    for east in (False, True):
        side = [c for c in chains if any(x > line if east else x < line for x, _ in c)]
        if len(chains) == 1:
            loops = side
        else:
            ends = sorted((c[at][1], k, at) for k, c in enumerate(side) for at in (0, -1))
            partner = {}
            for one, two in zip(ends[::2], ends[1::2]):
                partner[one[1:]], partner[two[1:]] = two[1:], one[1:]
            loops, used = [], set()
            for start in range(len(side)):
                loop, k = [], start
                while k not in used:
                    used.add(k)
                    loop += side[k]
                    k, at = partner[(k, -1)]
                    if at != 0:
                        sys.exit("a ring crosses the antimeridian in a way that this script cannot part")
                if loop:
                    loops.append(loop)
        move = 0
        if east and line > 0:
            move = -2 * HALF_TURN
        elif not east and line < 0:
            move = 2 * HALF_TURN
        pieces += [[(x + move, y) for x, y in loop] for loop in loops]
    return pieces


def clean(polygons, crossing=False):
    """Round, cut at the antimeridian when rings cross it, untangle, close, and wind as RFC 7946 says: outer rings counterclockwise."""
    def wound(ring, counterclockwise):
        ring = ring if (signed_area(ring) > 0) == counterclockwise else ring[::-1]
        return ring + ring[:1]

    result = []
    for polygon in polygons:
        rings = [[(round(x * UNIT), round(y * UNIT)) for x, y in ring] for ring in polygon]
        outer = [loop for piece in (cut(rings[0]) if crossing else rings[:1]) for loop in untangle(piece)]
        holes = [loop for ring in rings[1:] for loop in untangle(tidy(ring))]
        if holes and len(outer) != 1:
            sys.exit("a polygon with holes came apart")
        result += [[wound(ring, True)] + [wound(hole, False) for hole in holes] for ring in outer]
    return result


def geometry(polygons, kind="MultiPolygon"):
    parts = [
        "[" + ",".join(
            "[" + ",".join(f"[{number(x)},{number(y)}]" for x, y in ring) + "]" for ring in polygon
        ) + "]"
        for polygon in polygons
    ]
    coordinates = "[" + ",".join(parts) + "]" if kind == "MultiPolygon" else parts[0]
    return f'{{"type":"{kind}","coordinates":{coordinates}}}'


def feature(identity, properties, geometry_text, bbox=None):
    text = '{"type":"Feature","id":' + json.dumps(identity)
    text += ',"properties":' + json.dumps(properties, ensure_ascii=False, separators=(",", ":"))
    if bbox is not None:
        text += ',"bbox":' + json.dumps(bbox, separators=(",", ":"))
    return text + ',"geometry":' + geometry_text + "}"


def collection(features):
    return '{"type":"FeatureCollection","features":[\n' + ",\n".join(features) + "\n]}\n"


def countries(path):
    raw = path.read_bytes()
    found = hashlib.sha256(raw).hexdigest()
    if found != SOURCE_SHA256:
        sys.exit(f"{path}: expected the file of world-atlas 2.0.2, SHA-256 {SOURCE_SHA256}, found {found}")
    topology = json.loads(raw)
    (sx, sy), (tx, ty) = topology["transform"]["scale"], topology["transform"]["translate"]

    arcs = []
    for deltas in topology["arcs"]:
        x = y = 0
        arc = []
        for dx, dy in deltas:
            x, y = x + dx, y + dy
            arc.append((x * sx + tx, y * sy + ty))
        arcs.append(arc)

    def ring(indexes):
        points = []
        for index in indexes:
            arc = arcs[index] if index >= 0 else arcs[~index][::-1]
            points.extend(arc[1:] if points else arc)
        return points

    words = COUNTRIES.split()
    wanted = dict(zip(words[1::2], words[0::2]))
    result = {}
    for item in topology["objects"]["countries"]["geometries"]:
        numeric = item.get("id")
        # Two items of the source share the number of Australia; the mainland comes under its name.
        if numeric not in wanted or (numeric == "036" and item["properties"]["name"] != "Australia"):
            continue
        polygons = item["arcs"] if item["type"] == "MultiPolygon" else [item["arcs"]]
        polygons = clean([[ring(indexes) for indexes in polygon] for polygon in polygons], crossing=True)
        properties = {"name": item["properties"]["name"], "iso_n3": numeric, "source": "Natural Earth"}
        identity = wanted[numeric]
        if identity in result:
            sys.exit(f"{path}: {identity} is there twice")
        result[identity] = feature(identity, properties, geometry(polygons))
    missing = sorted(set(wanted.values()) - set(result))
    if missing:
        sys.exit(f"{path}: not found: {', '.join(missing)}")
    return [result[identity] for identity in sorted(result)]


def box(west, south, east, north):
    return [(west, south), (east, south), (east, north), (west, north), (west, south)]


def island(x, y, radius, points, phase):
    """A closed, wobbly outline around a point; it never crosses itself, for its radius stays positive."""
    ring = []
    for step in range(points):
        angle = 2 * math.pi * step / points
        reach = radius * (1 + 0.18 * math.sin(5 * angle + phase) + 0.07 * math.cos(17 * angle - phase))
        ring.append((x + reach * math.cos(angle), y + reach * math.sin(angle)))
    return ring + ring[:1]


def synthetic():
    def one(place, name, polygons):
        properties = {"name": name, "source": "synthetic"}
        return feature(f"synthetic-{place}", properties, geometry(clean(polygons)))

    squares = [[box(x, y, x + 0.5, y + 0.5)] for x in range(-44, -32) for y in range(12, 24)]

    # Around the pole: up one side of the antimeridian and down the other, as RFC 7946 wants it.
    edge = [(x, 86 + 0.75 * math.sin(math.radians(6 * x))) for x in range(-180, 181)]
    cap = edge + [(180, 90), (-180, 90), edge[0]]

    halves = [[box(172, 14, 180, 22)], [box(-180, 14, -172, 22)]]

    islands = [
        [island(-158 + 3.5 * column, 31 + 3 * row, 1.1, 345, column + 7 * row)]
        for column in range(8)
        for row in range(5)
    ]

    frame = [[box(70, -4, 91, 19), box(75, 0, 86, 15)]]

    chain = []
    for step in range(60):
        x, y = 55 + 0.65 * step, -40 + 0.5 * step
        chain.append([[(x - 0.1, y), (x, y - 0.1), (x + 0.1, y), (x, y + 0.1), (x - 0.1, y)]])

    return [
        one(1, "Grid of squares over the Atlantic", squares),
        one(2, "Cap around the North Pole", [[cap]]),
        one(3, "Box across the antimeridian, cut in two", halves),
        one(4, "Forty islands, a large body", islands),
        one(5, "Frame around Sri Lanka, with a hole", frame),
        one(6, "Chain of islets, a wide box with little in it", chain),
    ]


def areas():
    def one(identity, name, ring):
        return feature(identity, {"name": name}, geometry(clean([[ring]]), "Polygon"))

    hexagon = [(-41, 16), (-39, 14), (-36, 14), (-34, 16), (-36, 18), (-39, 18), (-41, 16)]
    java = [(105, -6.9), (106.3, -7.7), (110, -8.4), (114.4, -8.8), (114.6, -7.7), (112.9, -6.7),
            (111, -6.2), (108.4, -6.1), (106, -5.8), (105, -6.9)]
    chile = [(-72.2, -34.4), (-70.3, -34.4), (-69.9, -33.2), (-70.2, -32.2), (-71.8, -32.2), (-72.2, -34.4)]
    return [
        one("central-chile", "Santiago and Valparaíso", chile),
        feature("fiji", {"name": "Fiji, a box across the antimeridian"}, "null", [176, -21, -178, -15]),
        one("iceland", "Iceland", box(-25, 63, -13, 67)),
        one("java", "Java", java),
        one("mid-atlantic", "Mid-Atlantic", hexagon),
        one("sri-lanka", "Sri Lanka", box(79, 5, 82, 10)),
    ]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    here = pathlib.Path(__file__).resolve().parent
    features = countries(pathlib.Path(sys.argv[1])) + synthetic()
    for name, items in (("features.geojson", features), ("areas.geojson", areas())):
        data = collection(items).encode("utf-8")
        if len(data) > SIZE_LIMIT:
            sys.exit(f"{name}: {len(data)} bytes, more than {SIZE_LIMIT}")
        (here / name).write_bytes(data)
        large = sum(len(item.encode("utf-8")) > INLINE_LIMIT for item in items)
        print(f"{name}: {len(items)} features, {large} large, {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
