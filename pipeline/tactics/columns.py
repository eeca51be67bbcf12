"""A block of lines as columns: where each line is, what stands at fixed columns, and ids and times decoded together."""

from __future__ import annotations

import numpy as np

from pipeline.tactics.words import Keys, Scratch, word

ID_DIGITS = 16
REWRITTEN = (b"\r", b"\x1b")
"""A line that holds one of these is cut there, or freed from colours, before its form can be told."""
SIZES = (8, 9, 7, 10, 6, 5, 4, 3)
"""Characters of a time, the commonest first; other lengths go the slow way."""


def _repeat(byte: int) -> np.uint64:
    return np.uint64(int.from_bytes(bytes([byte]) * 8, "little"))


_MASKS = np.array([(1 << (8 * k)) - 1 for k in range(9)], np.uint64)
_POWERS = 10.0 ** np.arange(16)
_ZEROS, _TOP, _LOW4, _OVER9, _GAP = _repeat(0x30), _repeat(0x80), _repeat(0x0F), _repeat(0x76), np.uint64(0x27)
_PAIRS, _QUADS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_EVERY4 = np.uint64(0x000000FF000000FF)
WINDOW = 192
"""Bytes of the longest text that is looked at together with others."""
_LAST = np.tril(np.full((WINDOW + 1, WINDOW), 255, np.uint8), -1)[:, ::-1].copy().view(np.uint64)
"""By length: the mask of the last so many bytes of a window."""
_HEX_DIGIT = np.array([chr(byte) in "0123456789abcdefABCDEF" for byte in range(256)])


def _lead(text: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The digits before the point at the beginning of eight bytes: their number, where the point is, and whether they are 1 to 3."""
    value = (text & _MASKS[1]) - np.uint64(0x30)
    dot = np.ones(len(text), np.int64)
    ok = (value < 10) & ((text & _MASKS[2]) >> np.uint64(8) == word(b"."))
    rest = np.flatnonzero(~ok)  # nearly all times have one digit there
    if len(rest):
        value[rest], dot[rest], ok[rest] = _longer_lead(text[rest])
    return value, dot, ok


def _longer_lead(text: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    value = np.zeros(len(text), np.uint64)
    dot = np.zeros(len(text), np.int64)
    open_ = np.ones(len(text), bool)
    for place in range(4):
        byte = (text >> np.uint64(8 * place)) & _MASKS[1]
        ends = open_ & (byte == word(b".")) & (place > 0)
        dot[ends] = place
        digit = byte - np.uint64(0x30)
        open_ &= ~ends & (digit < 10)
        value = np.where(open_, value * np.uint64(10) + digit, value)
    return value, dot, dot > 0


class Lines:
    """The whole lines of a part of a block. Positions are those in the block.

    Args:
        held: The block; `Lines` are done with when it takes in another one.
        begin: Where the part begins.
        end: Where it ends, behind a line feed.
        width: Length of the prefix of the lines that are sought.
        tail: Its end, the same in all of them.
    """

    def __init__(self, held: Scratch, begin: int, end: int, width: int, tail: bytes) -> None:
        self.bytes = held.bytes  # padded, so that every position below is inside
        controls = held.controls(begin, end)
        character = self.bytes[controls]
        self.ends = controls[character == ord("\n")]
        self.words = np.ndarray((len(self.bytes) - 8,), "<u8", self.bytes.data, strides=(1,))
        self.width = width
        self.starts = np.empty_like(self.ends)
        self.starts[0] = begin
        self.starts[1:] = self.ends[:-1] + 1
        self.hot = self.ends - self.starts >= width + 8
        """Lines with this prefix, and as they stand in the block."""
        for i in range(0, len(tail), 8):
            piece = tail[i : i + 8]
            at = self.starts + (width - len(tail) + i)
            self.hot &= (self.at(at) & _MASKS[len(piece)]) == word(piece)
        for byte in REWRITTEN if len(controls) > len(self.ends) else ():
            self.hot[np.searchsorted(self.ends, controls[character == ord(byte)])] = False

    def at(self, positions: np.ndarray) -> np.ndarray:
        """Eight bytes at each position. One before the block wraps around to the padding, which equals no text."""
        found: np.ndarray = self.words[positions]
        return found

    def texts(self, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Texts as rows, as wide as the longest of them, but at most WINDOW.

        Args:
            start: int64 [n], where each begins in the block.
            end: int64 [n], where it ends.

        Returns:
            uint64 [n, width / 8], zeros before each text; and bool [n], whether the row is the whole text: not so where it
            is longer than WINDOW, or ends too near to the block's beginning.
        """
        size = end - start
        width = min(WINDOW, -int(size.max(initial=8)) // 8 * -8)
        every = np.ndarray((len(self.bytes) - width,), f"V{width}", self.bytes.data, strides=(1,))
        rows = every[np.maximum(end - width, 0)].view("<u8").reshape(len(end), width // 8)
        rows &= _LAST[:, WINDOW // 8 - width // 8 :].take(np.clip(size, 0, width), 0)
        return rows, (size <= width) & (end >= width)

    def keyed(self, keys: Keys) -> np.ndarray:
        """uint8 [lines]: the value of the key with which the message begins; 0 where it is none."""
        found: np.ndarray = keys.of(self.at(self.starts + self.width)) * self.hot
        return found

    @property
    def longest(self) -> int:
        """Length of the longest line."""
        return int((self.ends - self.starts).max(initial=0))

    def following(self, among: np.ndarray, text: bytes, place: int = 8) -> np.ndarray:
        """Indices of the lines of a mask whose message has these eight bytes at this place."""
        at = np.flatnonzero(among)
        found: np.ndarray = at[self.at(self.starts[at] + self.width + place) == word(text)]
        return found

    def with_id(self, among: np.ndarray) -> np.ndarray:
        """Indices of the lines of a mask that seem to end in a tactic's id or time: another line's end, joined to this one."""
        at = np.flatnonzero(among)
        at = at[_HEX_DIGIT[self.bytes[self.ends[at] - 1]]]
        found: np.ndarray = at[((self.at(self.ends[at] - 18) & _MASKS[2]) == word(b"0x")) | (self._sizes(at) > 0)]
        return found

    def ending(self, among: np.ndarray, text: bytes) -> np.ndarray:
        """Indices of the lines of a mask whose last bytes are `text`."""
        at = np.flatnonzero(among)
        for i in range(0, len(text), 8):
            piece = text[i : i + 8]
            here = self.at(self.ends[at] - (len(text) - i))
            at = at[(here & _MASKS[len(piece)]) == word(piece)]
        return at

    def completed(self, among: np.ndarray) -> np.ndarray:
        """Indices of the lines of a mask that end in `Fastest Tactic: 0x... Time: t`."""
        at = np.flatnonzero(among)
        if not len(at):
            return at
        size = self._sizes(at)
        stop = self.ends[at] - size - len(" Time: ")
        head = stop - (ID_DIGITS + len("Fastest Tactic: 0x"))
        good = (size > 0) & (self.at(head) == word(b"Fastest ")) & (self.at(head + 8) == word(b"Tactic: "))
        found: np.ndarray = at[good & ((self.at(head - 9)) == word(b"seconds."))]
        return found

    def holding(self, at: np.ndarray, text: bytes) -> np.ndarray:
        """Which of the positions have this text: bool."""
        found = np.ones(len(at), bool)
        for i in range(0, len(text), 8):
            piece = text[i : i + 8]
            found &= (self.at(at + i) & _MASKS[len(piece)]) == word(piece)
        return found

    def _sizes(self, at: np.ndarray) -> np.ndarray:
        """How many characters follow the ` Time: ` near each line's end; 0 where there is none."""
        ends = self.ends[at]
        size = np.zeros(len(at), np.int64)
        open_ = np.arange(len(at))
        for length in SIZES:
            if not len(open_):
                break
            here = (self.at(ends[open_] - (length + 7)) & _MASKS[7]) == word(b" Time: ")
            size[open_[here]] = length
            open_ = open_[~here]
        return size

    def times(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of lines that end in ` Time: d.ddd`: the length of the time, whether the line is so, and the time itself.

        The number is its digits divided by a power of ten: both are exact, so the quotient is what float() gives.
        """
        ends, size = self.ends[at], self._sizes(at)
        first = self.at(ends - size)
        lead, dot, ok = _lead(first)
        decimals = np.clip(size - dot - 1, 1, 8)
        drop = _MASKS[8 - decimals]
        digits = ((self.at(ends - 8) & ~drop) | (_ZEROS & drop)) - _ZEROS
        ok &= (size > dot + 1) & (size - dot <= 9) & ((((digits + _OVER9) | digits) & _TOP) == 0)
        digits = digits * np.uint64(10) + (digits >> np.uint64(8))
        value = (digits & _EVERY4) * np.uint64(0x000F424000000064) + ((digits >> np.uint64(16)) & _EVERY4) * np.uint64(0x0000271000000001)
        scale = _POWERS[decimals]
        return size, ok, (lead.astype(np.float64) * scale + (value >> np.uint64(32)).astype(np.float64)) / scale

    def _half(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eight lower-case hexadecimal digits at each position as a number, and whether they are such digits."""
        text = self.at(at)
        letters = (text >> np.uint64(6)) & _repeat(1)
        nibbles = (text & _LOW4) + letters * np.uint64(9)
        over = ((nibbles + _OVER9) & _TOP) >> np.uint64(7)
        ok = ((nibbles + _ZEROS + over * _GAP) == text) & ((nibbles & ~_LOW4) == 0)
        pairs = ((nibbles << np.uint64(4)) | (nibbles >> np.uint64(8))) & _PAIRS
        quads = (pairs | (pairs >> np.uint64(8))) & _QUADS
        return ((quads | (quads >> np.uint64(16))) & _MASKS[4]).astype(np.uint32).byteswap().astype(np.uint64), ok

    def ids(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sixteen hexadecimal digits at each position as uint64, and whether they are such digits."""
        high, ok = self._half(at)
        low, also = self._half(at + 8)
        return (high << np.uint64(32)) | low, ok & also
