"""The screen of a terminal, drawn from a program's output. Textual mostly moves the cursor and writes text."""

import codecs
import re

SEQUENCE = re.compile(r"\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[^\[\]])")
UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?)?$")
BLANK = " "


class TerminalScreen:
    """Columns and lines of characters. Each character takes one cell."""

    def __init__(self, columns: int, lines: int) -> None:
        self._cells = [[BLANK] * columns for _ in range(lines)]
        self._row = self._column = 0
        self._rest = ""
        # A chunk may end in the middle of a character.
        self._reading = codecs.getincrementaldecoder("utf-8")()

    @property
    def lines(self) -> list[str]:
        """Return the lines, without the blanks at their ends."""
        return ["".join(row).rstrip() for row in self._cells]

    def feed(self, chunk: bytes) -> None:
        """Draw the written text."""
        text = self._rest + self._reading.decode(chunk)
        cut = UNFINISHED.search(text)
        self._rest = text[cut.start() :] if cut else ""
        text = text[: cut.start()] if cut else text
        at = 0
        for found in SEQUENCE.finditer(text):
            self._write(text[at : found.start()])
            self._obey(found[2], found[1] or "")
            at = found.end()
        self._write(text[at:])

    def _write(self, text: str) -> None:
        for character in text:
            if character == "\n":
                self._row = min(self._row + 1, len(self._cells) - 1)
            elif character == "\r":
                self._column = 0
            elif character >= BLANK and self._column < len(self._cells[self._row]):
                self._cells[self._row][self._column] = character
                self._column += 1

    def _obey(self, command: str | None, numbers: str) -> None:
        if command == "H":
            row, _, column = numbers.partition(";")
            self._row = min(int(row or 1), len(self._cells)) - 1
            self._column = int(column or 1) - 1
        elif command == "J" or (command == "h" and numbers == "?1049"):
            self._cells = [[BLANK] * len(row) for row in self._cells]
        elif command == "K":
            row_ = self._cells[self._row]
            row_[self._column :] = [BLANK] * (len(row_) - self._column)
