"""Why an order of a person is not carried out."""


class OrderError(Exception):
    """An order that cannot be understood or matches nothing: nothing was changed."""

    def __init__(self, code: str, sentence: str) -> None:
        """Take a code for programs and a sentence that says what to do."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
