"""The reason why a cluster was not used, or why its results were not."""


class ClusterError(Exception):
    """A cluster cannot be used or cannot be trusted. `code` is for programs, `sentence` says what to do."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence
