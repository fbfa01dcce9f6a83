from pathlib import Path

from service.inspection_process.predicted_file import PredictedFile
from service.shared.file_rows import FileTask
from service.shared.inspection import Limits
from service.shared.settings import Settings
from tfbbb.tables.scan import TableScan


def test_classes_named_na_are_written(tmp_path: Path) -> None:
    given, output = tmp_path / "given.csv", tmp_path / "predicted.csv"
    given.write_text("id\na\nb\n")
    task = FileTask(
        path=given,
        name=given.name,
        format="csv",
        limits=Limits.from_settings(Settings()),
        features=["id"],
        text_columns=["id"],
        output=output,
    )
    names = "class,probabilities_NA,entropy,mutual_information"
    predicted = PredictedFile(TableScan(given), task)
    predicted.add(f"{names},warnings\nNA,0.9,0.3,0.1,\nnull,0.2,0.5,0.2,\n".encode())
    predicted.write()
    assert output.read_text().splitlines() == [
        "id,class,probability_NA,entropy,mutual_information",
        "a,NA,0.9,0.3,0.1",
        "b,null,0.2,0.5,0.2",
    ]
