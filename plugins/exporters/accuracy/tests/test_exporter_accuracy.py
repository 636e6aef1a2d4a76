from aiperf_exporter_accuracy.contract import (
    AccuracyAnswersContract,
    AccuracyExtractedContract,
    AccuracyLinesContract,
    AccuracyOverallContract,
    AccuracyProblemContract,
    AccuracyRepeatsContract,
    AccuracyResultsContract,
    AccuracyTableContract,
    AccuracyUnparsedContract,
    AccuracyVerdictContract,
    RightAnswerThroughputContract,
)


class TestLinesKeepTheContract(AccuracyLinesContract):
    pass


class TestResultsKeepTheContract(AccuracyResultsContract):
    pass


class TestAnswersKeepTheContract(AccuracyAnswersContract):
    pass


class TestOverallKeepsTheContract(AccuracyOverallContract):
    pass


class TestUnparsedKeepsTheContract(AccuracyUnparsedContract):
    pass


class TestProblemKeepsTheContract(AccuracyProblemContract):
    pass


class TestExtractedKeepsTheContract(AccuracyExtractedContract):
    pass


class TestRepeatsKeepTheContract(AccuracyRepeatsContract):
    pass


class TestThroughputKeepsTheContract(RightAnswerThroughputContract):
    pass


class TestTableKeepsTheContract(AccuracyTableContract):
    pass


class TestVerdictKeepsTheContract(AccuracyVerdictContract):
    pass
