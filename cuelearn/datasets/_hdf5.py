"""A reader for the plainest kind of HDF5 file, so that one published data set needs no library of its own.

Understood is what the library's oldest format writes for numeric arrays: superblock 0, groups as symbol tables, version 1 object headers,
contiguous or chunked storage, deflate and shuffle. Everything else is refused. Format: "HDF5 File Format Specification", version 1.1.
"""

import math
import struct
import zlib

import numpy as np

__all__ = ["read_hdf5"]

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_DATASPACE, _DATATYPE, _LAYOUT, _FILTERS, _CONTINUATION, _SYMBOL_TABLE = 1, 3, 8, 11, 16, 17
_DEFLATE, _SHUFFLE = 1, 2
_UNDEFINED = 2**64 - 1
#: Deflate packs 1,032 bytes into one at best.
_MOST_EXPANSION = 1100


def read_hdf5(content):
    """Read all arrays of a file.

    Parameters
    ----------
    content : bytes
        The file.

    Returns
    -------
    dict of str to ndarray
        By path, such as ``"train/data"``; ints and floats in the byte order of the file.

    Raises
    ------
    ValueError
        If the file is damaged, or has anything in it that this reader does not know.
    """
    try:
        if content[:8] != _SIGNATURE or content[8:9] != b"\0" or content[13:15] != b"\x08\x08":
            raise ValueError("no HDF5 file of superblock version 0 with 8-byte addresses")
        (root,) = struct.unpack_from("<Q", content, 64)
        arrays = {}
        _walk(content, root, "", arrays)
    except (
        struct.error,
        zlib.error,
        IndexError,
        KeyError,
        MemoryError,
        OverflowError,
        RecursionError,
        TypeError,
    ) as error:
        raise ValueError(f"damaged HDF5 file ({error})") from error
    return arrays


def _walk(content, address, path, arrays):
    messages = dict(_messages(content, address))
    if _SYMBOL_TABLE in messages:
        tree, heap = struct.unpack_from("<QQ", messages[_SYMBOL_TABLE])
        _expect(content, heap, b"HEAP")
        (names,) = struct.unpack_from("<Q", content, heap + 24)
        for _, node in _leaves(content, tree, kind=0, key_size=8):
            _expect(content, node, b"SNOD")
            (n_entries,) = struct.unpack_from("<H", content, node + 6)
            for entry in range(n_entries):
                name, child = struct.unpack_from("<QQ", content, node + 8 + 40 * entry)
                name = content[names + name : content.index(b"\0", names + name)].decode("utf-8")
                _walk(content, child, f"{path}/{name}" if path else name, arrays)
    elif _LAYOUT in messages:
        arrays[path] = _array(content, messages)


def _expect(content, address, signature):
    if content[address : address + 4] != signature:
        raise ValueError(f"damaged HDF5 file (no {signature.decode()} at {address})")


def _messages(content, address):
    """The messages of an object header of version 1, as (type, bytes)."""
    version, n_messages, _, size = struct.unpack_from("<BxHII", content, address)
    if version != 1:
        raise ValueError(f"object header of version {version}")
    blocks, found = [(address + 16, size)], []
    while blocks and len(found) < n_messages:
        at, size = blocks.pop(0)
        end = at + size
        while at + 8 <= end and len(found) < n_messages:
            kind, length = struct.unpack_from("<HH", content, at)
            body = content[at + 8 : at + 8 + length]
            found.append((kind, body))
            if kind == _CONTINUATION:
                blocks.append(struct.unpack_from("<QQ", body))
            at += 8 + length
    return found


def _leaves(content, address, kind, key_size):
    """Leaves of a B-tree of version 1, as (bytes of the key, address)."""
    if address == _UNDEFINED:
        return
    _expect(content, address, b"TREE")
    found, level, n_entries = struct.unpack_from("<BBH", content, address + 4)
    if found != kind:
        raise ValueError(f"damaged HDF5 file (tree of kind {found} where {kind} was expected)")
    for entry in range(n_entries):
        at = address + 24 + entry * (key_size + 8)
        (child,) = struct.unpack_from("<Q", content, at + key_size)
        if level:
            yield from _leaves(content, child, kind, key_size)
        else:
            yield content[at : at + key_size], child


def _array(content, messages):
    rank = messages[_DATASPACE][1]
    shape = struct.unpack_from(f"<{rank}Q", messages[_DATASPACE], 8)
    kind, bits, size = struct.unpack_from("<BB2xI", messages[_DATATYPE])
    if kind & 15 > 1:
        raise ValueError(f"array whose type is neither integer nor float (class {kind & 15})")
    letter = "f" if kind & 15 else "i" if bits & 8 else "u"
    dtype = np.dtype(f"{'>' if bits & 1 else '<'}{letter}{size}")
    version, layout = struct.unpack_from("<BB", messages[_LAYOUT])
    if version != 3 or layout not in (1, 2):
        raise ValueError(f"array with a layout of version {version}, class {layout}")
    if math.prod(shape) * size > _MOST_EXPANSION * len(content):
        raise ValueError(f"damaged HDF5 file (array of shape {shape})")
    out = np.zeros(shape, dtype=dtype)
    if layout == 1:
        (start,) = struct.unpack_from("<Q", messages[_LAYOUT], 2)
        if start != _UNDEFINED:
            out[...] = np.frombuffer(content, dtype, out.size, start).reshape(shape)
        return out
    (start,) = struct.unpack_from("<Q", messages[_LAYOUT], 3)
    chunk = struct.unpack_from(f"<{rank}I", messages[_LAYOUT], 11)
    filters = _filters(messages.get(_FILTERS))
    for key, address in _leaves(content, start, kind=1, key_size=8 + 8 * (rank + 1)):
        length, skipped = struct.unpack_from("<II", key)
        offset = struct.unpack_from(f"<{rank}Q", key, 8)
        part = content[address : address + length]
        for number, name in reversed(list(enumerate(filters))):
            if skipped >> number & 1:
                continue
            part = (
                zlib.decompress(part)
                if name == _DEFLATE
                else np.frombuffer(part, np.uint8).reshape(size, -1).T.tobytes()
            )
        part = np.frombuffer(part, dtype).reshape(chunk)
        place = tuple(slice(o, min(o + c, s)) for o, c, s in zip(offset, chunk, shape, strict=False))
        out[place] = part[tuple(slice(0, p.stop - p.start) for p in place)]
    return out


def _filters(body):
    """Numbers of the filters that chunks went through, in their order."""
    if body is None:
        return []
    if body[0] != 1:
        raise ValueError(f"filters of version {body[0]}")
    at, numbers = 8, []
    for _ in range(body[1]):
        number, name, _, n_values = struct.unpack_from("<HHHH", body, at)
        if number not in (_DEFLATE, _SHUFFLE):
            raise ValueError(f"chunks with a filter of number {number}")
        numbers.append(number)
        at += 8 + -(-name // 8) * 8 + 4 * (n_values + n_values % 2)
    return numbers
