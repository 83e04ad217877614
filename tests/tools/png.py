# SPDX-License-Identifier: MIT
"""What is in a PNG file: its size and its colours."""

import struct
import zlib


def _chunks(data):
    at = 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + length]
        at += 12 + length


def _paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def _unfilter(kind, line, above, step):
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        predicted = (0, left, above[i], (left + above[i]) // 2, _paeth(left, above[i], corner))
        line[i] = (line[i] + predicted[kind]) & 0xff
    return line


def colours(path):
    """(width, height, {colour: how many pixels}) of a file with 8 bits a channel."""
    with open(path, "rb") as stream:
        data = stream.read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError(f"{path} is no PNG")
    chunks = list(_chunks(data))
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if depth != 8 or colour not in (2, 6) or interlaced:
        raise ValueError(f"{path}: a form of PNG that is not read here")
    step = 3 if colour == 2 else 4
    raw = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    above = bytearray(width * step)
    found = {}
    for y in range(height):
        begin = y * (width * step + 1)
        line = bytearray(raw[begin + 1:begin + 1 + width * step])
        above = _unfilter(raw[begin], line, above, step)
        for x in range(0, len(above), step):
            pixel = bytes(above[x:x + 3])
            found[pixel] = found.get(pixel, 0) + 1
    return width, height, found
