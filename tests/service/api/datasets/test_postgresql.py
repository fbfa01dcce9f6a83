from pathlib import Path

import pytest

from service.shared.settings import Settings
from tests.service.serving import serving


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_datasets_are_kept_in_postgresql_as_in_sqlite(
    database_url: str, tmp_path: Path
) -> None:
    settings = Settings(
        data_dir=tmp_path / "data",
        models=tmp_path / "models",
        job_slots=0,
        database_url=database_url,
    )
    with serving(settings) as client:
        made = []
        for i in range(3):
            table = f"a,b\n{i},2\n".encode()
            first = client.post("/v1/datasets?name=a%00b", content=table)
            again = client.post("/v1/datasets", content=table)
            assert [first.status_code, again.status_code] == [201, 200]
            made.append(first.json()["id"])
        page = client.get("/v1/datasets?limit=2").json()
        cursor = {"cursor": page["next_cursor"]}
        rest = client.get("/v1/datasets", params=cursor).json()
        listed = [d["id"] for d in page["datasets"] + rest["datasets"]]
        assert listed == made[::-1]
        assert client.get("/v1/datasets/%00").status_code == 404
        for id in made:
            assert client.delete(f"/v1/datasets/{id}").status_code == 204
        assert [*(tmp_path / "data" / "datasets").iterdir()] == []
