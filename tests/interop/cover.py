"""Reads a cover: the boxes [west, south, east, north] that a body lies in. The bytes are described in common/src/cover.

As a program, it reads envelopes, one a line, and prints the boxes of each."""

import base64, json, sys
from math import ceil, floor

EMPTY, FULL, SPLIT = "empty", "full", "split"


class Decoder:
    def __init__(self, text):
        self.text, self.code, self.range, self.counts = iter(text), 0, 2**32 - 1, {}
        for _ in range(4):
            self.code = self.code << 8 | next(self.text, 0)

    def decide(self, context):
        no, yes = self.counts.get(context, (1, 1))
        bound = (self.range >> 12) * min(max((no << 12) // (no + yes), 1), 4095)
        decision = self.code >= bound
        self.code, self.range = (self.code - bound, self.range - bound) if decision else (self.code, bound)
        no, yes = (no, yes + 2) if decision else (no + 2, yes)
        self.counts[context] = (no, yes) if no + yes <= 255 else ((no + 1) // 2, (yes + 1) // 2)
        while self.range < 2**24:
            self.code, self.range = (self.code << 8 | next(self.text, 0)) & 0xFFFFFFFF, self.range << 8
        return decision


def boxes(cover, bbox):
    cells = base64.urlsafe_b64decode(cover + "=" * (-len(cover) % 4))[33:] if cover else b""
    if len(cells) < 3 or cells[0] != 1:
        return [bbox]
    (w, s, e, n), (top, deepest) = bbox, (byte - 256 if byte > 127 else byte for byte in cells[1:3])
    e += 360 if w > e else 0
    ends = lambda low, high: range(floor(low * 2.0**top), max(ceil(high * 2.0**top), floor(low * 2.0**top) + 1))
    level, decoder, states, found = [(c, r) for r in ends(s, n) for c in ends(w, e)], Decoder(cells[3:]), {}, []
    roots = set(level)

    def state(z, c, r):  # a cell that is not decided has the state of the undivided one that holds it, or none
        if (z, c, r) not in states and z > top:
            above = state(z - 1, c >> 1, r >> 1)
            return None if above == SPLIT else above
        return states.get((z, c, r), None if (c, r) in roots else EMPTY)

    for z in range(top, deepest + 1):
        for c, r in level:
            around = [state(z, *cell) for cell in ((c - 1, r), (c + 1, r), (c, r - 1), (c, r + 1))]
            context = 5 * around.count(EMPTY) + around.count(FULL)
            states[z, c, r] = EMPTY if not decoder.decide((z < deepest, context)) else SPLIT if z < deepest and decoder.decide((context,)) else FULL
            if states[z, c, r] == FULL:
                size = 2.0**-z
                for low, high, turn in [(w, e, 0)] if e == bbox[2] else [(w, 180, 0), (-180, bbox[2], 360)]:
                    west, east = max(c * size - turn, low), min((c + 1) * size - turn, high)
                    found += [[west, max(r * size, s), east, min((r + 1) * size, n)]] if west <= east else []
        level = [(2 * c + x, 2 * r + y) for c, r in level if states[z, c, r] == SPLIT for y in (0, 1) for x in (0, 1)]
    return found


if __name__ == "__main__":
    for envelope in map(json.loads, sys.stdin):
        print(json.dumps(boxes(envelope["cover"], envelope["bbox"])))
